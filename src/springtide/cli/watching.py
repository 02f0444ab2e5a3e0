"""Recorders that show a live run while it goes on: line by line, or as a view that stays in its place on a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from springtide.live import LiveRun
from springtide.model.action import Action
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import HostState, Observation
from springtide.report.units import count

_SEEN = 40  # intervals that a line of the view goes back
_LEVELS = " ▁▂▃▄▅▆▇█"


class Lines:
    """Says in one line what each interval was like, and in another what was decided."""

    def __init__(self, live: LiveRun) -> None:
        self._slo_s = live.application.slo.latency_s
        self._policy = live.policy_name

    def observation(self, observation: Observation) -> None:
        typer.echo(
            f"{observation.end_s:7.1f} s  {count(observation.offered_rows / observation.interval_s):>6} rows/s"
            f"  backlog {count(observation.backlog_rows)} rows  p90 {observation.latency.p90_s:.1f} of {self._slo_s:g} s"
            f"  hosts {len(observation.running_hosts)}  replicas {_replicas(observation)}",
            err=True,
        )
        for event in observation.events:
            typer.echo(f"{'':11}{event}", err=True)

    def decision(self, _: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        if actions:
            typer.echo(f"{'':11}{_why(decision, self._policy)}: {'; '.join(str(a) for a in actions)}", err=True)

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...


class View:
    """Load, backlog, latency, executors and replicas, as they are and as they were; and the latest decision with its reason.

    Decisions and events scroll by above it. At the end of the run the last view stays.
    """

    def __init__(self, live: LiveRun, console: Console | None = None) -> None:
        self._slo = live.application.slo
        self._policy = live.policy_name
        self._title = f"{live.application.name} under {live.policy_name}"
        self._most_hosts = live.pool.max_hosts
        self._loads, self._backlogs, self._latencies = (deque[float](maxlen=_SEEN) for _ in range(3))
        self._hosts: deque[float] = deque(maxlen=_SEEN)
        self._newest: Observation | None = None
        self._latest = "none yet"
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, get_renderable=self.__rich__)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def observation(self, observation: Observation) -> None:
        self._newest = observation
        self._loads.append(observation.offered_rows / observation.interval_s)
        self._backlogs.append(observation.backlog_rows)
        self._latencies.append(observation.latency.slo_s)
        self._hosts.append(len(observation.running_hosts))
        for event in observation.events:
            self._console.print(f"{observation.end_s:7.1f} s  {event}", style="dim", markup=False, highlight=False)
        self._live.refresh()

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        if actions:
            done = "; ".join(str(action) for action in actions)
            self._latest = f"{_why(decision, self._policy)}: {done}"
            line = f"{observation.end_s:7.1f} s  {self._latest}"
            self._console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
            self._live.refresh()

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...

    def __rich__(self) -> RenderableType:
        newest = self._newest
        if newest is None:
            return Panel("waiting for the first interval", title=self._title)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column()
        table.add_row("load", sparkline(self._loads), f"{count(self._loads[-1])} rows/s")
        table.add_row("backlog", sparkline(self._backlogs), f"{count(self._backlogs[-1])} rows")
        table.add_row(*self._latency_row(newest))
        table.add_row("executors", sparkline(self._hosts, self._most_hosts), self._executors(newest))
        table.add_row("replicas", "", _replicas(newest))
        latest = Text(f"decision  {self._latest}", overflow="ellipsis")
        return Panel(Group(table, latest), title=f"{self._title}, {newest.end_s:.0f} s", title_align="left")

    def _latency_row(self, newest: Observation) -> tuple[str, Text, Text]:
        within = self._latencies[-1] <= self._slo.latency_s
        style = "green" if within else "red"
        words = f"{100 * self._slo.percentile:g} % within {self._latencies[-1]:.1f} s; {self._slo.latency_s:g} s are allowed"
        if not newest.latency.rows:
            style, words = "dim", f"no row came through just now; {self._slo.latency_s:g} s are allowed"
        most = max(self._slo.latency_s, *self._latencies)
        return "latency", Text(sparkline(self._latencies, most), style=style), Text(words, style=style)

    def _executors(self, newest: Observation) -> str:
        running, starting = len(newest.running_hosts), sum(h.state is HostState.STARTING for h in newest.hosts.values())
        return f"{running} of at most {self._most_hosts}" + (f", {starting} starting" if starting else "")


def sparkline(values: Sequence[float] | deque[float], most: float | None = None) -> str:
    """Values as bars between 0 and the most of them, or another most.

    >>> sparkline([0, 1, 2, 4])
    ' ▂▄█'
    >>> sparkline([1, 1], most=4.0)
    '▂▂'
    """
    top = max(values, default=0.0) if most is None else most
    if top <= 0:
        return _LEVELS[0] * len(values)
    return "".join(_LEVELS[min(len(_LEVELS) - 1, round((len(_LEVELS) - 1) * max(0.0, value) / top))] for value in values)


def _replicas(observation: Observation) -> str:
    return ", ".join(f"{name} {placed.replicas}" for name, placed in observation.observed.operators.items())


def _why(decision: Decision, policy: str) -> str:
    guards = (str(veto) for veto in decision.why_not if veto.who != policy)  # the policy's own are many
    return "; ".join([decision.reason, *guards])
