"""Case `viewers`: what fifty viewers of a run take from its control loop.

The loop turns over a simulated application without a rest, and writes an interval to its journal every second, as a live one
may. A dashboard follows the journal, with fifty streams of events; every tenth of a second it and its viewers are stopped, or
go on. So both kinds of turns have the same machine, however its speed changes, and what the viewers make work is all done in
one half of the time. In the end they go on without stops for a while. Every viewer must have seen every interval.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.benchmarks.dashboard.recorded import INTERVAL_S, opened_journal, simulation
from springtide.benchmarks.dashboard.served import Served, ended, served
from springtide.benchmarks.dashboard.turning import Seldom, Turning
from springtide.benchmarks.dashboard.viewers import Seen
from springtide.benchmarks.figures import Bar, Figure, figure
from springtide.errors import SpringtideError, require
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.observation import FloatArray
from springtide.simulation import compile_simulator

CASE = "viewers"
VIEWERS = 50
SLOWDOWN_BAR = Bar(limit=1.01)

_WRITE_S = 1.0
_DRAWS = 2000
_DAY = 86_400.0 / INTERVAL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Turns of the loop: `first` alone, then pairs of blocks with viewers and without, in turn, then `last` with viewers."""

    first: int = 2_000
    block: int = 45
    pairs: int = 2_200
    last: int = 10_000

    @property
    def end(self) -> int:
        return self.first + 2 * self.pairs * self.block

    def watched(self, turn: int) -> bool:
        """Which block of a pair is first takes turns too."""
        block = (turn - self.first) // self.block
        return block % 4 in (0, 3) if self.first <= turn < self.end else turn >= self.end

    def blocks_s(self, took_s: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """The mean turn of each block, with viewers and without."""
        means = np.array(took_s[self.first : self.end]).reshape(self.pairs, 2, self.block).mean(axis=2)
        odd = np.arange(self.pairs) % 2 == 1
        return np.where(odd, means[:, 1], means[:, 0]), np.where(odd, means[:, 0], means[:, 1])


QUICK = Plan(first=200, pairs=20, last=1_500)


def measure(folder: Path, say: Callable[[str], None], *, quick: bool) -> list[Figure]:
    compile_simulator()
    plan = QUICK if quick else Plan()
    with Watching(folder / "watched.jsonl", plan, say) as loop:
        took_s = loop.run()
    return figures(plan, took_s, loop)


class Watching:
    """A control loop that runs, and a dashboard with its viewers beside it. `cpu_share` is the dashboard's, of one core, and
    `delays_s` are the times from writing an interval until the last viewer has seen it, both without stops."""

    def __init__(self, journal: Path, plan: Plan, say: Callable[[str], None]) -> None:
        self._journal, self._plan, self._say = journal, plan, say
        self._opened = ExitStack()
        self._beside: tuple[Served, subprocess.Popen[str]] | None = None
        self._unstopped = (0.0, 0.0)
        self._first_written = 0
        self._written_at_s: dict[int, float] = {}
        self.cpu_share = 0.0
        self.delays_s: list[float] = []

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self._go_on(True)  # who is stopped cannot be told to end
        self._opened.close()

    def run(self) -> list[float]:
        """How long each turn took."""
        turns = self._plan.end + self._plan.last
        simulated = simulation(days=(turns + 1) / _DAY)
        rows = np.atleast_2d(simulated.trace.counts)
        backend = Turning(SimulatorBackend(simulated.application, simulated.pool, simulated.settings, rows), self._between)
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
            recorder = Seldom(journal, _WRITE_S)
            self._written_at_s = recorder.written_at_s
            loop.run(backend, recorder, turns * INTERVAL_S)
            self._leave()
        return backend.took_s

    def _between(self, turn: int) -> None:
        """What happens between two turns counts in neither."""
        plan = self._plan
        if turn == plan.first:
            self._come()
        elif plan.first < turn <= plan.end and plan.watched(turn) != plan.watched(turn - 1):
            self._go_on(plan.watched(turn))
        if turn == plan.end and self._beside is not None:
            self._unstopped = self._beside[0].times_s()
        if plan.first <= turn < plan.end and (turn - plan.first) % (200 * plan.block) == 0:
            self._say(f"{CASE}: {100 * (turn - plan.first) // (plan.end - plan.first)} %")

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
        self._first_written = 1 + max(self._written_at_s, default=-1)

    def _go_on(self, on: bool) -> None:
        for process in () if self._beside is None else (self._beside[0].process, self._beside[1]):
            process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)

    def _leave(self) -> None:
        assert self._beside is not None
        dashboard, viewers = self._beside
        (began_s, cpu_s), (ended_s, cpu_now_s) = self._unstopped, dashboard.times_s()
        written = [i for i in self._written_at_s if i >= self._first_written]
        said, _ = viewers.communicate(f"{max(written, default=0)}\n", timeout=60)
        seen = msgspec.json.decode(said, type=Seen)
        missed = [i for i in written if seen.viewers.get(i) != VIEWERS]
        require(not missed, f"{CASE}: not all {VIEWERS} viewers saw the intervals {missed}")
        self.cpu_share = (cpu_now_s - cpu_s) / (ended_s - began_s)
        self.delays_s = [seen.last_at_s[i] - self._written_at_s[i] for i in written if i >= self._plan.end]


def figures(plan: Plan, took_s: Sequence[float], watched: Watching) -> list[Figure]:
    """Turns with viewers and without; the ratio is of all the time they took, and its error that of drawing other pairs."""
    on_s, off_s = plan.blocks_s(took_s)
    drawn = np.random.default_rng(0).integers(plan.pairs, size=(_DRAWS, plan.pairs))
    error = float((on_s[drawn].sum(axis=1) / off_s[drawn].sum(axis=1)).std())
    return [
        figure(CASE, "a turn of the loop, nobody watches", "ms", [1e3 * float(off_s.mean())]),
        figure(CASE, f"a turn of the loop, {VIEWERS} viewers", "ms", [1e3 * float(on_s.mean())]),
        figure(CASE, f"a turn, {VIEWERS} viewers / nobody", "x", [float(on_s.sum() / off_s.sum())], SLOWDOWN_BAR),
        figure(CASE, "standard error of that", "x", [error]),
        figure(CASE, "the dashboard's share of one core", "%", [100 * watched.cpu_share]),
        figure(CASE, "from writing to the last viewer", "s", watched.delays_s),
    ]
