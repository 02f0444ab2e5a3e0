"""What `springtide explain JOURNAL` shows: what was decided when, why, why not, what it promised and what came of it.

Pure: journal records in, values out (`explain`), and those values as something rich can print (`render`). The words are
the decisions' own. A stretch of intervals that held for the same reason is one entry: reasons are the same when they
differ in numbers and hosts only ("busiest host-1 at 0.62"), and what varied is shown as `lowest..highest`.

Times are run time: seconds since the run's clock started.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from springtide.errors import SpringtideError, nearest
from springtide.journal.controls import in_words
from springtide.journal.records import (
    ControlRecord,
    DecisionRecord,
    EndRecord,
    ExpectationRecord,
    ObservationRecord,
    OutcomeRecord,
    Record,
    RunRecord,
    WhyNotRecord,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

_FIGURES = {  # what `Expectation` calls it: what a person calls it, and its unit
    "utilisation": ("utilisation", ""),
    "processed_rows_per_s": ("processed", " rows/s"),
    "latency_s": ("latency", " s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which decisions to show: those made from `since_s` to `until_s`, that concern `operator`, that changed something.

    What people asked for is a change, too.
    """

    since_s: float = 0.0
    until_s: float = math.inf
    operator: str | None = None
    changes_only: bool = False

    def check(self, run: RunRecord) -> None:
        """Refuse filters that could not let anything through."""
        if self.until_s < self.since_s:
            raise SpringtideError(
                f"nothing lies between {clock_text(self.since_s)} and {clock_text(self.until_s)}: the end is before the start"
            )
        known = [o.name for o in run.application.operators]
        if self.operator is not None and self.operator not in known:
            raise SpringtideError(
                f"application {run.application.name!r} has no operator {self.operator!r}; {nearest(self.operator, known)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """By the name `Expectation` has for it: what a decision promised, and what was measured one interval later."""

    what: str
    expected: float | None
    measured: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCount:
    verdict: str
    intervals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A decision that stands from `start_s` to `end_s`, or a stretch of `intervals` that held for the same reason.

    `change` is absent when nothing was to change. `figures` are those promised, or all if none was; a stretch has none,
    for each of its intervals had its own. `verdicts` are on promises only. `controls` is what was asked for by hand before it.
    """

    start_s: float
    end_s: float
    first_interval: int
    intervals: int
    change: str | None
    reason: str
    why_not: tuple[str, ...]
    actions: tuple[str, ...]
    events: tuple[str, ...]
    figures: tuple[Figure, ...]
    verdicts: tuple[VerdictCount, ...]
    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The timeline of a run. `ended` is false for a run that was killed, or is still going; `last_s` is how far it got."""

    application: str
    policy: str
    interval_s: float
    trace: str | None
    seed: int | None
    decisions: int
    entries: tuple[Entry, ...]
    ended: bool
    last_s: float


def explain(run: RunRecord, records: Iterable[Record], filters: Filters | None = None) -> Explanation:
    """The timeline told by the records that follow `run`, in the order they were written."""
    filters = filters or Filters()
    filters.check(run)
    story = _Story(last_s=run.time_s)
    for record in records:
        story.add(record)
    shown = [step for step in story.steps if _passes(step, filters, run.time_s)]
    return Explanation(
        application=run.application.name,
        policy=run.policy.name,
        interval_s=run.interval_s,
        trace=run.trace,
        seed=run.seed,
        decisions=len(story.steps),
        entries=tuple(_entry(stretch, run.time_s) for stretch in _stretches(shown)),
        ended=story.ended,
        last_s=story.last_s - run.time_s,
    )


@dataclass(slots=True, kw_only=True)
class _Step:
    """One decision and what belongs to it, while the story is gathered."""

    position: int
    decision: DecisionRecord
    events: tuple[str, ...]
    until_s: float
    controls: tuple[ControlRecord, ...] = ()
    outcome: OutcomeRecord | None = None


@dataclass(slots=True, kw_only=True)
class _Story:
    """Gathers records into steps: a decision has what came before it, and stands, and meets its outcome, before the next."""

    last_s: float
    ended: bool = False
    steps: list[_Step] = field(default_factory=list)
    _events: tuple[str, ...] = field(default=(), init=False)
    _controls: tuple[ControlRecord, ...] = field(default=(), init=False)

    def add(self, record: Record) -> None:
        self.last_s = record.time_s
        self.ended = isinstance(record, EndRecord)
        if self.steps:
            self.steps[-1].until_s = record.time_s
        match record:
            case ObservationRecord():
                self._events += record.events
            case ControlRecord():
                self._controls += (record,)
            case DecisionRecord():
                self._decide(record)
            case OutcomeRecord() if self.steps:
                self.steps[-1].outcome = record

    def _decide(self, decision: DecisionRecord) -> None:
        step = _Step(
            position=len(self.steps),
            decision=decision,
            events=self._events,
            until_s=decision.time_s,
            controls=self._controls,
        )
        self.steps.append(step)
        self._events, self._controls = (), ()


def _passes(step: _Step, filters: Filters, origin_s: float) -> bool:
    return (
        filters.since_s <= step.decision.time_s - origin_s <= filters.until_s
        and (step.decision.change is not None or bool(step.controls) or not filters.changes_only)
        and (filters.operator is None or _concerns(step, filters.operator))
    )


def _concerns(step: _Step, operator: str) -> bool:
    """Whether the decision changes the operator or speaks of it, or somebody asked something of it."""
    decision = step.decision
    if any(control.operator == operator for control in step.controls):
        return True
    name = re.compile(rf"(?<![\w-]){re.escape(operator)}(?![\w-])")
    return operator in decision.changed_operators or any(
        name.search(text) for text in (decision.reason, *(_why_not_text(w) for w in decision.why_not))
    )


def _stretches(steps: Iterable[_Step]) -> list[list[_Step]]:
    """Steps grouped as they are shown: every change alone, holds for the same reason together."""
    stretches: list[list[_Step]] = []
    for step in steps:
        if stretches and _goes_on(stretches[-1][-1], step):
            stretches[-1].append(step)
        else:
            stretches.append([step])
    return stretches


def _goes_on(before: _Step, step: _Step) -> bool:
    return (
        step.position == before.position + 1
        and before.decision.change is None
        and step.decision.change is None
        and not step.events
        and not step.controls
        and _shapes(before.decision) == _shapes(step.decision)
    )


def _shapes(decision: DecisionRecord) -> list[str]:
    return [_shape(decision.reason), *(_shape(_why_not_text(w)) for w in decision.why_not)]


def _entry(stretch: Sequence[_Step], origin_s: float) -> Entry:
    first, last = stretch[0], stretch[-1]
    return Entry(
        start_s=first.decision.time_s - origin_s,
        end_s=last.until_s - origin_s,
        first_interval=first.decision.interval,
        intervals=len(stretch),
        change=first.decision.change,
        reason=_with_ranges([s.decision.reason for s in stretch]),
        why_not=tuple(
            _with_ranges(texts)
            for texts in zip(*([_why_not_text(w) for w in s.decision.why_not] for s in stretch), strict=True)
        ),
        actions=first.decision.actions,
        events=first.events,
        figures=_figures(first) if len(stretch) == 1 else (),
        verdicts=_verdicts(s.outcome.verdict for s in stretch if s.outcome is not None and _promised(s)),
        controls=tuple(in_words(control) for control in first.controls),
    )


def _figures(step: _Step) -> tuple[Figure, ...]:
    measured = step.outcome.measured if step.outcome is not None else ExpectationRecord()
    return tuple(
        Figure(what=what, expected=getattr(step.decision.expected, what), measured=getattr(measured, what))
        for what in _promised(step) or _FIGURES
    )


def _promised(step: _Step) -> list[str]:
    return [what for what in _FIGURES if getattr(step.decision.expected, what) is not None]


def _verdicts(verdicts: Iterable[str]) -> tuple[VerdictCount, ...]:
    by_shape: dict[str, list[str]] = {}
    for verdict in verdicts:
        by_shape.setdefault(_shape(verdict), []).append(verdict)
    return tuple(VerdictCount(verdict=_with_ranges(same), intervals=len(same)) for same in by_shape.values())


def _why_not_text(why_not: WhyNotRecord) -> str:
    return f"{why_not.who}: not {why_not.what}, because {why_not.why}"


# A host, or a number that stands alone: not the 3 of "v3", "14:03" or "3rd", which are names and must be equal.
_VARYING = re.compile(r"(?<![\w.:,-])(?P<host>host-)?(?P<number>-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w:-]|\.\d)")


def _shape(text: str) -> str:
    """The text without what may vary: what two reasons have in common when only the measurements differ."""
    return _VARYING.sub(lambda found: f"{found['host'] or ''}\0", text)


def _with_ranges(texts: Sequence[str]) -> str:
    """One text for several of the same shape."""
    ranges = (_range(found) for found in zip(*(_VARYING.finditer(text) for text in texts), strict=True))
    return _VARYING.sub(lambda _: next(ranges), texts[0])


def _range(found: Sequence[re.Match[str]]) -> str:
    ordered = sorted(found, key=lambda match: float(match["number"].replace(",", "")))
    lowest, highest = ordered[0][0], ordered[-1][0]
    return lowest if lowest == highest else f"{lowest}..{highest}"


def clock_text(time_s: float) -> str:
    """Run time as hours, minutes and seconds, and days once there is one.

    >>> clock_text(51_605.0), clock_text(93_784.0)
    ('14:20:05', '1d 02:03:04')
    """
    # Rounded first: an interval's end of 59.999999 s is a minute that floating point missed.
    days, seconds = divmod(math.floor(round(time_s, 3)), 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{days}d {clock}" if days else clock


def render(explanation: Explanation) -> RenderableType:
    """The explanation as a person reads it: a heading, the timeline, and how the run ended."""
    from rich.console import Group  # noqa: PLC0415 - rich is slow to import, and --json does not need it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    timeline = Table.grid(padding=(0, 2))
    timeline.add_column(no_wrap=True)
    timeline.add_column(overflow="fold")
    for entry in explanation.entries:
        lines = [Text(text, style=style) for text, style in _lines(entry)]
        timeline.add_row(Text(_span_text(entry), style="cyan"), Text("\n").join(lines))
    return Group(Text(_heading(explanation), style="bold"), timeline, Text(_ending(explanation), style="dim"))


def _heading(explanation: Explanation) -> str:
    parts = [f"{explanation.application}, policy {explanation.policy}, every {_number_text(explanation.interval_s)} s"]
    if explanation.trace is not None:
        parts.append(f"trace {explanation.trace}")
    if explanation.seed is not None:
        parts.append(f"seed {explanation.seed}")
    return ", ".join(parts)


def _ending(explanation: Explanation) -> str:
    parts = []
    if not explanation.entries:
        parts.append("no decision matches the filters" if explanation.decisions else "no decision was recorded")
    if explanation.ended:
        parts.append(f"ended at {clock_text(explanation.last_s)}")
    else:
        parts.append(f"ends early at {clock_text(explanation.last_s)}: the run was killed, or is still going")
    return "\n".join(parts)


def _span_text(entry: Entry) -> str:
    if entry.intervals == 1:
        return clock_text(entry.start_s)
    return f"{clock_text(entry.start_s)}-{clock_text(entry.end_s)}"


def _lines(entry: Entry) -> Iterator[tuple[str, str]]:
    """What is said of an entry, line by line, and in which style."""
    yield from ((f"event: {event}", "magenta") for event in entry.events)
    yield from ((f"by hand: {control}", "blue") for control in entry.controls)
    if entry.change is None:
        yield _held_text(entry), ""
        yield from ((why_not, "yellow") for why_not in entry.why_not)
        return
    yield f"changed: {entry.change}", "bold green"
    yield f"because: {entry.reason}", ""
    yield from ((why_not, "yellow") for why_not in entry.why_not)
    expected = _figures_text((f.what, f.expected) for f in entry.figures)
    if expected:
        yield f"expected: {expected}", "dim"
    yield f"came of it: {_outcome_text(entry)}", "dim"


def _held_text(entry: Entry) -> str:
    stretch = f" ({entry.intervals} intervals)" if entry.intervals > 1 else ""
    return f"held: {entry.reason.removeprefix('hold: ')}{stretch}" + (
        f"; came of it: {_verdicts_text(entry)}" if entry.verdicts else ""
    )


def _outcome_text(entry: Entry) -> str:
    measured = _figures_text((f.what, f.measured) for f in entry.figures)
    if entry.verdicts and measured:
        return f"{_verdicts_text(entry)} ({measured})"
    return _verdicts_text(entry) or measured or "not known"


def _verdicts_text(entry: Entry) -> str:
    if len(entry.verdicts) == 1:
        return entry.verdicts[0].verdict
    return ", ".join(f"{v.verdict} ({v.intervals} of {entry.intervals})" for v in entry.verdicts)


def _figures_text(values: Iterable[tuple[str, float | None]]) -> str:
    return ", ".join(
        f"{_FIGURES[what][0]} {_number_text(value)}{_FIGURES[what][1]}" for what, value in values if value is not None
    )


def _number_text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
