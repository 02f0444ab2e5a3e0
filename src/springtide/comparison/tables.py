"""A comparison as tables for people: one per trace, and one over all. They fit into 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from springtide.comparison.standing import Comparison, Standing
from springtide.report.units import count, duration, share

_Column = tuple[str, Callable[[Standing], str]]

_NEGLIGIBLE = 5e-5  # of all rows: it would be shown as 0.00 %


def trace_tables(comparison: Comparison) -> list[RenderableType]:
    """One table per trace, policies by their cost."""
    costs: list[_Column] = [("cost", lambda s: _number(s.cost_core_hours))]
    return [
        _table(
            f"{trace.trace}: {duration(trace.duration_s)}, {count(trace.rows)} rows, {trace.peak_cores:.1f} cores at its peak",
            [("core-\nhours", lambda s: _number(s.core_hours)), *_COMMON, *costs],
            trace.policies,
        )
        for trace in comparison.traces
    ]


def overall_table(comparison: Comparison) -> RenderableType:
    """Means over all traces."""
    return _table(
        f"All: means over {len(comparison.traces)} traces",
        [
            ("core-h\na day", lambda s: _number(s.core_hours_per_day)),
            *_COMMON,
            ("cost\na day", lambda s: _number(s.cost_core_hours_per_day)),
            ("SLO\nkept", lambda s: f"{s.slo_kept_on}/{s.traces}"),
        ],
        comparison.overall,
    )


def explanation(comparison: Comparison) -> str:
    """What the columns mean."""
    late, allowed = f"{comparison.slo_latency_s:g} s", f"{100 * (1 - comparison.slo_percentile):g} %"
    return (
        f"late: rows that took more than {late} (the SLO allows {allowed}), were dropped or left waiting. osc.: hosts added "
        f"and released again within {comparison.oscillation_window_s / 60:g} min, or the other way round. cost: core-hours, "
        f"and {comparison.late_cost:g} times its own core time for each late row. regret: cost above the oracle's; ratio: to "
        "the oracle's. *: no other policy, but the oracle, needs no more core-hours, has no more late rows, and less of one."
    )


_COMMON: list[_Column] = [
    ("late", lambda s: _late(s.slo_violation_share)),
    ("p99", lambda s: duration(s.latency_p99_s)),
    ("changes\na day", lambda s: _number(s.reconfigurations_per_day)),
    ("osc.\na day", lambda s: _number(s.oscillations_per_day)),
]
_ORACLE: list[_Column] = [
    ("regret", lambda s: "" if s.regret is None else f"{100 * s.regret:.0f} %"),
    ("core-h\nratio", lambda s: "" if s.core_hours_to_oracle is None else f"{s.core_hours_to_oracle:.2f}"),
]


def _table(title: str, columns: Sequence[_Column], standings: Sequence[Standing]) -> RenderableType:
    shown = [*columns, *(_ORACLE if any(s.regret is not None for s in standings) else [])]
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("policy", overflow="fold")
    for name, _ in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for standing in standings:
        mark, style = ("  ", "dim") if standing.dominated_by else ("* ", "")
        table.add_row(mark + standing.policy, *(figure(standing) for _, figure in shown), style=style)
    return Group(Text(title, style="bold"), table, "")


def _number(value: float) -> str:
    """
    >>> _number(3.14), _number(314.15), _number(31_415.9)
    ('3.1', '314', '31,416')
    """
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _late(value: float) -> str:
    """
    >>> _late(0.123), _late(0.0042), _late(0.00001), _late(0.0)
    ('12.3 %', '0.42 %', '<0.01 %', '0 %')
    """
    if value >= 0.01:
        return share(value)
    return f"{100 * value:.2f} %" if value >= _NEGLIGIBLE else "<0.01 %" if value > 0 else "0 %"
