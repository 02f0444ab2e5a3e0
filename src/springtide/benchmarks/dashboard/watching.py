"""Case `viewers`: what fifty viewers of a run take from its control loop.

The loop turns ten times a second, which is more than any live one, over a simulated application, and writes its journal. In
some windows of the run a dashboard follows the journal, with fifty streams of events; in the others there is none. They take
turns, and so does which of them is first. Every viewer must have seen every interval of its window.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.benchmarks.dashboard.paced import Paced
from springtide.benchmarks.dashboard.recorded import INTERVAL_S, opened_journal, simulation
from springtide.benchmarks.dashboard.served import Served, ended, served
from springtide.benchmarks.dashboard.viewers import Seen
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.errors import SpringtideError, require
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.simulation import compile_simulator

CASE = "viewers"
VIEWERS = 50
SLOWDOWN_BAR = Bar(limit=1.01)

_PACE_S = 0.1
_FIRST = 40  # turns that are not counted: modules are imported, and memory is allocated
_SETTLING = 8  # turns after a window's beginning that are not counted
_DRAWS = 2000
_DAY = 86_400.0 / INTERVAL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Turns `first` to `last` of the loop, with viewers or without; what they cost in between."""

    watched: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One window with viewers: what they saw, and the share of a core that the dashboard used meanwhile."""

    seen: Seen
    cpu_share: float


def measure(folder: Path, say: Callable[[str], None], *, quick: bool) -> list[Figure]:
    compile_simulator()
    pairs, turns = (1, 30) if quick else (40, 60)
    windows = [
        Window(watched=watched, first=first + _SETTLING, last=first + turns)
        for pair in range(pairs)
        for half, watched in enumerate((pair % 2 == 0, pair % 2 != 0))
        for first in (_FIRST + (2 * pair + half) * turns,)
    ]
    loop = Watching(folder / "watched.jsonl", windows, say)
    with loop:
        took_s, observed_at_s = loop.run()
    return figures(windows, took_s, observed_at_s, loop.watches)


class Watching:
    """A control loop that runs, and a dashboard with its viewers that comes and goes beside it."""

    def __init__(self, journal: Path, windows: list[Window], say: Callable[[str], None]) -> None:
        self._journal = journal
        self._windows = windows
        self._say = say
        self._opened = ExitStack()
        self._beside: tuple[Served, subprocess.Popen[str]] | None = None
        self._cpu_s = 0.0
        self.watches: list[Watch] = []

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def run(self) -> tuple[list[float], list[float]]:
        """How long each turn took, and when its interval was observed."""
        turns = self._windows[-1].last
        simulated = simulation(days=(turns + 1) / _DAY)
        rows = np.atleast_2d(simulated.trace.counts)
        backend = Paced(
            SimulatorBackend(simulated.application, simulated.pool, simulated.settings, rows), _PACE_S, self._between
        )
        with (
            opened_journal(self._journal, simulated, live=True) as journal,
            forecast_for(simulated.policy, INTERVAL_S) as forecast,
        ):
            loop = ControlLoop(
                application=simulated.application,
                pool=simulated.pool,
                policy=simulated.policy,
                interval_s=INTERVAL_S,
                forecast=forecast,
            )
            loop.run(backend, journal, turns * INTERVAL_S)
            self._between(turns)
        return backend.took_s, backend.observed_at_s

    def _between(self, turn: int) -> None:
        """Windows end and begin between two turns."""
        for number, window in enumerate(self._windows):
            if window.watched and turn == window.last:
                self._leave(window)
            if turn == window.first - _SETTLING:
                self._say(f"{CASE}: window {number + 1} of {len(self._windows)}, {VIEWERS if window.watched else 'no'} viewers")
                if window.watched:
                    self._come()
            if window.watched and turn == window.first and self._beside is not None:
                self._cpu_s = self._beside[0].cpu_s()

    def _come(self) -> None:
        dashboard = self._opened.enter_context(served(self._journal))
        command = [sys.executable, "-m", "springtide.benchmarks.dashboard.viewers", dashboard.base, str(VIEWERS)]
        viewers = self._opened.enter_context(
            ended(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        )
        assert viewers.stdout is not None
        if viewers.stdout.readline() != "ready\n":
            raise SpringtideError(f"{CASE}: the viewers could not connect")
        self._beside = dashboard, viewers

    def _leave(self, window: Window) -> None:
        assert self._beside is not None
        dashboard, viewers = self._beside
        share = (dashboard.cpu_s() - self._cpu_s) / ((window.last - window.first) * _PACE_S)
        said, _ = viewers.communicate(f"{window.last - 1}\n", timeout=60)
        self._opened.close()
        self._beside = None
        seen = msgspec.json.decode(said, type=Seen)
        missed = [i for i in range(window.first, window.last) if seen.viewers.get(i) != VIEWERS]
        require(not missed, f"{CASE}: not all {VIEWERS} viewers saw the intervals {missed}")
        self.watches.append(Watch(seen=seen, cpu_share=share))


def figures(windows: list[Window], took_s: list[float], observed_at_s: list[float], watches: list[Watch]) -> list[Figure]:
    """The median turn of each window, each pair of windows side by side, and what the viewers had of it."""
    turn_s: dict[bool, list[float]] = {True: [], False: []}
    for window in windows:
        turn_s[window.watched].append(median(took_s[window.first : window.last]))
    delays_s = [
        seen.last_at_s[i] - observed_at_s[i]
        for window, seen in zip((w for w in windows if w.watched), (w.seen for w in watches), strict=True)
        for i in range(window.first, window.last)
    ]
    ratios = [on / off for on, off in zip(turn_s[True], turn_s[False], strict=True)]
    doubt = _standard_error_of_median(ratios)
    return [
        figure(CASE, "a turn of the loop, nobody watches", "ms", [1e3 * s for s in turn_s[False]]),
        figure(CASE, f"a turn of the loop, {VIEWERS} viewers", "ms", [1e3 * s for s in turn_s[True]]),
        figure(CASE, f"a turn of the loop, {VIEWERS} viewers / nobody", "x", ratios, SLOWDOWN_BAR),
        figure(CASE, "standard error of that median", "x", [doubt]),
        figure(CASE, "the dashboard's share of one core", "%", [100 * watch.cpu_share for watch in watches]),
        figure(CASE, "from the observation to the last viewer", "s", delays_s),
    ]


def _standard_error_of_median(samples: list[float]) -> float:
    """How far the median of other samples like these would be from this one: by drawing from them again and again."""
    drawn = np.random.default_rng(0).choice(samples, size=(_DRAWS, len(samples)))
    return float(np.median(drawn, axis=1).std())
