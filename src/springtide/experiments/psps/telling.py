"""What the sections of the page share: rows of tables, and claims that compare two configurations.

Rules: tables show the first stretch, which is the one most like the paper's. A claim holds if it does there; on how many of all
stretches it does is said beside it. What holds now and would not one day is said not to have been looked into.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from springtide.experiments.psps.paper import Printed
from springtide.experiments.psps.streams import GENERATED, PAPERS_OWN, RECORDED
from springtide.experiments.psps.world import Setting
from springtide.experiments.study import Claim, Finding, PageTable

COLUMNS = (
    "configuration",
    "saved resources: paper",
    "here",
    "throughput degradation: paper",
    "here",
    "processed share: paper",
    "here",
    "latency in ms: paper",
    "here",
    "mean cores here",
    "mean replicas here",
)
NOT_LOOKED_INTO = "it did on the recorded stream when this study was written, so the reason has not been looked into"

_ORIGINS = {
    PAPERS_OWN: "the paper's own, as its authors have published them",
    RECORDED: "recorded ones",
    GENERATED: "generated ones, because the recording was not at hand",
}
_SAME_SHARE = 0.0005  # of all rows: what may still be on its way when a run ends
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Figures:
    """The four metrics of a run, and what stands behind them."""

    saved_resources: float
    throughput_degradation: float
    processed_share: float
    latency_ms: float
    mean_cores: float
    mean_replicas: float
    mean_to_peak: float


_NAMES = tuple(Figures.__dataclass_fields__)


class Results:
    """The findings of an experiment by their configuration, one for each stretch."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._of: dict[Setting, dict[int, Mapping[str, Any]]] = {}
        for finding in findings:
            setting = Setting(**finding.run.parameters)
            self._of.setdefault(replace(setting, stretch=0), {})[setting.stretch] = finding.found

    def each(self, setting: Setting) -> list[Figures]:
        """One for each stretch, in their order."""
        found = self._of[replace(setting, stretch=0)]
        return [Figures(**{name: float(found[stretch][name]) for name in _NAMES}) for stretch in sorted(found)]

    def of(self, setting: Setting) -> Figures:
        """On the first stretch."""
        return self.each(setting)[0]

    def first(self, setting: Setting) -> Mapping[str, Any]:
        """All that was found on the first stretch."""
        found = self._of[replace(setting, stretch=0)]
        return found[min(found)]

    @property
    def origin(self) -> str:
        """Where the rates of the first stretch come from, for people."""
        found = {str(by_stretch[min(by_stretch)]["origin"]) for by_stretch in self._of.values()}
        return f"The rates are {', and '.join(said for origin, said in _ORIGINS.items() if origin in found)}."


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: tide has no figures of the paper."""

    name: str
    setting: Setting
    printed: Printed | None = None


def table(caption: str, results: Results, rows: Sequence[Row]) -> PageTable:
    return PageTable(caption=caption, columns=COLUMNS, rows=tuple(_cells(results.of(row.setting), row) for row in rows))


def _cells(here: Figures, row: Row) -> tuple[str, ...]:
    printed = row.printed
    return (
        row.name,
        f"{printed.saved_resources:.4f}" if printed else "-",
        f"{here.saved_resources:.4f}",
        f"{printed.throughput_degradation:.4f}" if printed else "-",
        f"{here.throughput_degradation:.4f}",
        f"{printed.processed_share:.4f}" if printed else "-",
        f"{here.processed_share:.4f}",
        f"{printed.latency_ms:,.0f}" if printed else "-",
        f"{here.latency_ms:,.0f}",
        f"{here.mean_cores:.1f}",
        f"{here.mean_replicas:.1f}",
    )


@dataclass(frozen=True, slots=True)
class Side:
    """A configuration with the name that claims call it by, and the paper's figures of it, if it has any."""

    name: str
    setting: Setting
    printed: Printed | None = None


Metric = Callable[[Figures | Printed], float]


def saved(figures: Figures | Printed) -> float:
    return figures.saved_resources


def degradation(figures: Figures | Printed) -> float:
    return figures.throughput_degradation


def processed(figures: Figures | Printed) -> float:
    return figures.processed_share


def latency(figures: Figures | Printed) -> float:
    return figures.latency_ms


def lower(results: Results, says: str, metric: Metric, sides: tuple[Side, Side], *, why: str = NOT_LOOKED_INTO) -> Claim:
    """The claim that a metric is lower in the first configuration than in the second."""
    return _compared(results, says, metric, sides, (operator.lt, why))


def higher(results: Results, says: str, metric: Metric, sides: tuple[Side, Side], *, why: str = NOT_LOOKED_INTO) -> Claim:
    """The claim that a metric is higher in the first configuration than in the second."""
    return _compared(results, says, metric, sides, (operator.gt, why))


def _compared(
    results: Results,
    says: str,
    metric: Metric,
    sides: tuple[Side, Side],
    expected: tuple[Callable[[float, float], bool], str],
) -> Claim:
    (one, other), (right, why) = sides, expected
    pairs = zip(results.each(one.setting), results.each(other.setting), strict=True)
    agreeing = [right(metric(a), metric(b)) for a, b in pairs]
    return Claim(
        says=says,
        paper=_beside(metric, one, other, one.printed, other.printed),
        here=_beside(metric, one, other, results.of(one.setting), results.of(other.setting)) + _count(agreeing),
        holds=agreeing[0],
        why="" if agreeing[0] else why,
    )


def _count(agreeing: Sequence[bool]) -> str:
    return f"; so on {sum(agreeing)} of {len(agreeing)} stretches" if len(agreeing) > 1 else ""


def _beside(metric: Metric, one: Side, other: Side, *figures: Figures | Printed | None) -> str:
    a, b = figures
    if a is None or b is None:
        return "-"
    change = f"{(metric(a) - metric(b)) / metric(b):+.0%}" if metric(b) > 0 else ""
    change = "" if change in ("", "+0%", "-0%") else f" ({change})"
    return f"{said(metric, metric(a))} ({one.name}) against {said(metric, metric(b))} ({other.name}){change}"


def said(metric: Metric, value: float) -> str:
    return f"{value:,.0f} ms" if metric is latency else f"{value:.3f}"


@dataclass(frozen=True, slots=True)
class Against:
    """tide beside PSPS in one configuration; `name` tells it from the others of its table."""

    name: str
    psps: Setting
    tide: Setting


def tide_claims(results: Results, where: str, pairs: Sequence[Against]) -> tuple[Claim, ...]:
    """Two claims on a table: what PSPS is for (rows processed, in time), and what that takes."""
    return (
        _tide_claim(
            results,
            f"{where}: tide processes no fewer rows than PSPS, at no higher latency",
            pairs,
            _serves,
            lambda f: f"{f.processed_share:.4f} and {f.latency_ms:,.0f} ms",
        ),
        _tide_claim(
            results,
            f"{where}: tide saves no fewer resources than PSPS",
            pairs,
            lambda ours, theirs: ours.saved_resources >= theirs.saved_resources - _SAME,
            lambda f: f"{f.saved_resources:.3f}",
        ),
    )


def _serves(ours: Figures, theirs: Figures) -> bool:
    in_time = ours.latency_ms <= theirs.latency_ms + _SAME
    return in_time and ours.processed_share >= theirs.processed_share - _SAME_SHARE


def _tide_claim(
    results: Results,
    says: str,
    pairs: Sequence[Against],
    right: Callable[[Figures, Figures], bool],
    told: Callable[[Figures], str],
) -> Claim:
    by_pair = [list(zip(results.each(pair.tide), results.each(pair.psps), strict=True)) for pair in pairs]
    agreeing = [all(right(*both) for both in stretch) for stretch in zip(*by_pair, strict=True)]
    here = "; ".join(
        f"{f'{pair.name}: ' if pair.name else ''}{told(ours)} against {told(theirs)}"
        for pair, ((ours, theirs), *_) in zip(pairs, by_pair, strict=True)
    )
    behind = [(pair.name, *both[0]) for pair, both in zip(pairs, by_pair, strict=True) if not right(*both[0])]
    why = "; ".join(f"{f'{name}: ' if name else ''}{_price(ours, theirs)}" for name, ours, theirs in behind)
    return Claim(says=says, paper="-", here=here + _count(agreeing), holds=agreeing[0], why=why, ours=True)


def _price(ours: Figures, theirs: Figures) -> str:
    """What each of both pays and gets."""
    return (
        f"tide holds {ours.mean_cores:.1f} cores on average and loses {1 - ours.processed_share:.1%} of the rows at "
        f"{ours.latency_ms:,.0f} ms, PSPS holds {theirs.mean_cores:.1f} and loses {1 - theirs.processed_share:.1%} at "
        f"{theirs.latency_ms:,.0f} ms; a row that is lost has no latency, and needs no core"
    )
