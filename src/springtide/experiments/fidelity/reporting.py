"""A validation as a table for people."""

from __future__ import annotations

from rich.table import Table

from springtide.experiments.fidelity.validating import LATENCY_BAR, REPLICAS_BAR, Report
from springtide.report.units import count, duration


def table(report: Report) -> Table:
    shown = Table("pair", "figure", "live", "simulated", "error", "bar")
    for one in report.pairs:
        name = f"{one.application}, {one.pair}, {one.policy}"
        live, simulated, errors = one.live, one.simulated, one.errors
        replicas = (f"{live.mean_replicas:.2f}", f"{simulated.mean_replicas:.2f}", _share(errors.replicas))
        latency = (duration(live.median_latency_s), duration(simulated.median_latency_s), _share(errors.latency))
        backlog = (
            f"{count(live.mean_backlog_rows)} rows",
            f"{count(simulated.mean_backlog_rows)} rows",
            _share(errors.backlog),
        )
        shown.add_row(name, "mean replicas", *replicas, _share(REPLICAS_BAR))
        shown.add_row("", "median latency", *latency, _share(LATENCY_BAR))
        shown.add_row("", "mean backlog", *backlog, "", end_section=True)
    return shown


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"
