"""Cases `busy` and `resting`: what fifty viewers of a run take from its control loop.

The loop turns over a simulated application and writes its journal. In some windows of the run a dashboard follows the
journal, with fifty streams of events; in the others there is none. They take turns, and so does which of them is first. Every
viewer must have seen every interval that was written in its window.

* busy: the loop never rests, and writes an interval every second, as a live one may.
* resting: it turns ten times a second, and writes every interval: more often than any live one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.benchmarks.dashboard.paced import Paced, Seldom
from springtide.benchmarks.dashboard.recorded import INTERVAL_S, opened_journal, simulation
from springtide.benchmarks.dashboard.served import Served, ended, served
from springtide.benchmarks.dashboard.viewers import Seen
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.errors import SpringtideError, require
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.simulation import compile_simulator

VIEWERS = 50
SLOWDOWN_BAR = Bar(limit=1.01)

_DRAWS = 2000
_DAY = 86_400.0 / INTERVAL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often the loop turns, how often it writes, and the turns of a window; the first of each do not count."""

    case: str
    turn_s: float
    write_s: float
    turns: int
    settling: int
    pairs: int = 24

    def windows(self, *, quick: bool) -> list[Window]:
        """Pairs of windows, after one in which memory is allocated and nothing counts."""
        pairs = 1 if quick else self.pairs
        return [
            Window(watched=watched, first=begin + self.settling, last=begin + self.turns)
            for pair in range(pairs)
            for half, watched in enumerate((pair % 2 == 0, pair % 2 != 0))
            for begin in ((1 + 2 * pair + half) * self.turns,)
        ]


BUSY = Pace(case="busy", turn_s=0.0, write_s=1.0, turns=3000, settling=300)
RESTING = Pace(case="resting", turn_s=0.1, write_s=0.0, turns=60, settling=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Turns `first` to `last` of the loop, with viewers or without."""

    watched: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One window with viewers: how long after it was written the last of them saw each interval, and the dashboard's share of a
    core meanwhile."""

    delays_s: list[float]
    cpu_share: float


def measure(pace: Pace, folder: Path, say: Callable[[str], None], *, quick: bool) -> list[Figure]:
    compile_simulator()
    windows = pace.windows(quick=quick)
    with Watching(folder / f"{pace.case}.jsonl", pace, windows, say) as loop:
        took_s = loop.run()
    return figures(pace.case, windows, took_s, loop.watches)


CASES = {pace.case: partial(measure, pace) for pace in (BUSY, RESTING)}


class Watching:
    """A control loop that runs, and a dashboard with its viewers that comes and goes beside it."""

    def __init__(self, journal: Path, pace: Pace, windows: list[Window], say: Callable[[str], None]) -> None:
        self._journal, self._pace, self._windows, self._say = journal, pace, windows, say
        self._opened = ExitStack()
        self._beside: tuple[Served, subprocess.Popen[str]] | None = None
        self._began = (0.0, 0.0)
        self._written_at_s: dict[int, float] = {}
        self.watches: list[Watch] = []

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def run(self) -> list[float]:
        """How long each turn took."""
        turns = self._windows[-1].last
        simulated = simulation(days=(turns + 1) / _DAY)
        rows = np.atleast_2d(simulated.trace.counts)
        backend = Paced(
            SimulatorBackend(simulated.application, simulated.pool, simulated.settings, rows), self._pace.turn_s, self._between
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
            recorder = Seldom(journal, self._pace.write_s)
            self._written_at_s = recorder.written_at_s
            loop.run(backend, recorder, turns * INTERVAL_S)
            self._between(turns)
        return backend.took_s

    def _between(self, turn: int) -> None:
        """Windows end and begin between two turns."""
        for number, window in enumerate(self._windows):
            if window.watched and turn == window.last:
                self._leave(window)
            if turn == window.first - self._pace.settling:
                who = VIEWERS if window.watched else "no"
                self._say(f"{self._pace.case}: window {number + 1} of {len(self._windows)}, {who} viewers")
                if window.watched:
                    self._come()
            if window.watched and turn == window.first and self._beside is not None:
                self._began = self._beside[0].times_s()

    def _come(self) -> None:
        dashboard = self._opened.enter_context(served(self._journal))
        command = [sys.executable, "-m", "springtide.benchmarks.dashboard.viewers", dashboard.base, str(VIEWERS)]
        viewers = self._opened.enter_context(
            ended(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        )
        assert viewers.stdout is not None
        if viewers.stdout.readline() != "ready\n":
            raise SpringtideError(f"{self._pace.case}: the viewers could not connect")
        self._beside = dashboard, viewers

    def _leave(self, window: Window) -> None:
        assert self._beside is not None
        dashboard, viewers = self._beside
        (wall_s, cpu_s), (wall_now_s, cpu_now_s) = self._began, dashboard.times_s()
        written = [i for i in self._written_at_s if window.first <= i < window.last]
        said, _ = viewers.communicate(f"{written[-1] if written else 0}\n", timeout=60)
        self._opened.close()
        self._beside = None
        seen = msgspec.json.decode(said, type=Seen)
        missed = [i for i in written if seen.viewers.get(i) != VIEWERS]
        require(not missed, f"{self._pace.case}: not all {VIEWERS} viewers saw the intervals {missed}")
        delays_s = [seen.last_at_s[i] - self._written_at_s[i] for i in written]
        self.watches.append(Watch(delays_s=delays_s, cpu_share=(cpu_now_s - cpu_s) / (wall_now_s - wall_s)))


def figures(case: str, windows: list[Window], took_s: list[float], watches: list[Watch]) -> list[Figure]:
    """The median turn of each window, each pair of windows side by side, and what the viewers had of it."""
    turn_ms: dict[bool, list[float]] = {True: [], False: []}
    for window in windows:
        turn_ms[window.watched].append(1e3 * median(took_s[window.first : window.last]))
    ratios = [on / off for on, off in zip(turn_ms[True], turn_ms[False], strict=True)]
    delays_s = [delay_s for watch in watches for delay_s in watch.delays_s]
    return [
        figure(case, "a turn of the loop, nobody watches", "ms", turn_ms[False]),
        figure(case, f"a turn of the loop, {VIEWERS} viewers", "ms", turn_ms[True]),
        figure(case, f"a turn, {VIEWERS} viewers / nobody", "x", ratios, SLOWDOWN_BAR),
        figure(case, "standard error of that median", "x", [_standard_error_of_median(ratios)]),
        figure(case, "the dashboard's share of one core", "%", [100 * watch.cpu_share for watch in watches]),
        figure(case, "from writing to the last viewer", "s", delays_s),
    ]


def _standard_error_of_median(samples: list[float]) -> float:
    """How far the median of other samples like these would be from this one: by drawing from them again and again."""
    drawn = np.random.default_rng(0).choice(samples, size=(_DRAWS, len(samples)))
    return float(np.median(drawn, axis=1).std())
