"""What the runs found, by policy and setting, averaged over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from springtide.experiments.edf.running import MIGRATION, SCALE_IN, SCALE_OUT
from springtide.experiments.study import Finding, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The means of all seeds, and the least of `fewest_after_most`. `series` and `stops_s` are of the first seed, for pictures
    and for what is told of times."""

    seeds: int
    duration_s: float
    availability: float
    downtime_s: float
    reconfigurations: float
    scale_outs: float
    scale_ins: float
    migrations: float
    stops: float
    mean_replicas: float
    most_replicas: float
    fewest_after_most: int
    mean_hosts: float
    core_hours: float
    response_mean_s: float
    response_p50_s: float
    response_p90_s: float
    response_p99_s: float
    late_share: float
    late_intervals: float
    trace: str
    series: Values
    stops_s: Sequence[float]

    @property
    def downtime_share(self) -> float:
        return 1 - self.availability


class Results:
    """All findings of the study."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._by_parameters: dict[tuple[tuple[str, object], ...], list[Values]] = {}
        for finding in findings:
            self._by_parameters.setdefault(_key(finding.run.parameters), []).append(finding.found)

    def has(self, policy: str, **setting: object) -> bool:
        return _key({"policy": policy, **setting}) in self._by_parameters

    def of(self, policy: str, **setting: object) -> Figures:
        """A policy's figures in a setting, of which only what differs from `world.Setting` is named."""
        return _figures(self._by_parameters[_key({"policy": policy, **setting})])


def _key(parameters: Values) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(parameters.items()))


def _figures(found: Sequence[Values]) -> Figures:
    def mean(value: Callable[[Values], float]) -> float:
        return sum(value(one) for one in found) / len(found)

    first = next(one for one in found if "series" in one)
    named = {name: mean(lambda one, name=name: one[name]) for name in _MEANS}  # type: ignore[misc]
    return Figures(
        seeds=len(found),
        scale_outs=mean(lambda one: one["kinds"].get(SCALE_OUT, 0)),
        scale_ins=mean(lambda one: one["kinds"].get(SCALE_IN, 0)),
        migrations=mean(lambda one: one["kinds"].get(MIGRATION, 0)),
        stops=mean(lambda one: len(one["stops_s"])),
        fewest_after_most=min(one["fewest_after_most"] for one in found),
        trace=first["trace"],
        series=first["series"],
        stops_s=first["stops_s"],
        **named,
    )


_MEANS = (
    "duration_s",
    "availability",
    "downtime_s",
    "reconfigurations",
    "mean_replicas",
    "most_replicas",
    "mean_hosts",
    "core_hours",
    "response_mean_s",
    "response_p50_s",
    "response_p90_s",
    "response_p99_s",
    "late_share",
    "late_intervals",
)


def percent(share: float, digits: int = 1) -> str:
    """
    >>> percent(0.9374)
    '93.7 %'
    """
    return f"{100 * share:.{digits}f} %"


def number(value: float) -> str:
    """A mean count, without a point where it is whole.

    >>> number(7.0), number(7.333)
    ('7', '7.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def milliseconds(seconds: float) -> str:
    """
    >>> milliseconds(0.0421), milliseconds(12.3456)
    ('42 ms', '12.3 s')
    """
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
