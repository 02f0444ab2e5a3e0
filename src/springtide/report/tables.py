"""Run summaries as tables for people. Numbers come with units."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from springtide.report.summary import RunSummary
from springtide.report.units import count, duration, hours, share

_RECONFIGURATIONS = {
    "scale_outs": "out",
    "scale_ins": "in",
    "shards_moved": "moved",
    "regroupings": "regrouped",
    "hosts_added": "+hosts",
    "hosts_released": "-hosts",
    "hosts_failed": "failed",
}


def runs_table(runs: Sequence[RunSummary]) -> Table:
    """One column per run, one row per figure: readable at 80 columns for up to four runs."""
    who = "policies" if len(runs) > 1 else "policy"
    table = Table(title=f"What the {who} {did(runs)}")
    table.add_column("", style="bold")
    for run in runs:
        table.add_column(f"{run.policy}\n{run.trace}", justify="right")
    for label, cells in _figures(runs):
        table.add_row(label, *cells)
    return table


def operators_table(run: RunSummary) -> Table:
    table = Table(title=f"Operators of {run.application} under {run.policy}")
    for column in ("operator", "arrived", "processed", "dropped", "backlog", "replicas", "utilisation"):
        table.add_column(column, justify="left" if column == "operator" else "right")
    for o in run.operators:
        figures = (count(o.arrived), count(o.processed), count(o.dropped), count(o.backlog))
        table.add_row(o.name, *figures, f"{o.mean_replicas:.2f}", share(o.utilisation))
    return table


def _figures(runs: Sequence[RunSummary]) -> list[tuple[str, list[str]]]:
    return [
        ("rows from sources", [count(r.rows.source) for r in runs]),
        ("rows at operators", [count(r.rows.arrived) for r in runs]),
        ("  processed", [count(r.rows.processed) for r in runs]),
        ("  dropped", [count(r.rows.dropped) for r in runs]),
        ("  left in backlog", [count(r.rows.backlog) for r in runs]),
        ("core-hours", [hours(r.core_hours) for r in runs]),
        ("  at its peak throughout", [hours(r.peak_core_hours) for r in runs]),
        ("hosts mean / most", [f"{r.mean_hosts:.2f} / {r.max_hosts}" for r in runs]),
        ("replicas, mean", [f"{r.mean_replicas:.2f}" for r in runs]),
        ("host load min/avg/max", [_utilisation(r) for r in runs]),
        ("latency p10", [duration(r.latency.p10_s) for r in runs]),
        ("latency p50", [duration(r.latency.p50_s) for r in runs]),
        ("latency p90", [duration(r.latency.p90_s) for r in runs]),
        ("latency p99", [duration(r.latency.p99_s) for r in runs]),
        (_slo(runs[0]), [f"{share(r.slo_violation_share)}, {'kept' if r.slo_kept else 'missed'}" for r in runs]),
        ("reconfigurations", [_reconfigurations(r) for r in runs]),
        ("downtime", [duration(r.downtime_s) for r in runs]),
        ("run, from start to end" if runs[0].live else "simulated / wall", [_length(r) for r in runs]),
    ]


def did(runs: Sequence[RunSummary]) -> str:
    """A live run was done; a simulated one tells what would have been."""
    return "did" if all(run.live for run in runs) else "would have done"


def _length(run: RunSummary) -> str:
    return duration(run.duration_s) if run.live else f"{duration(run.duration_s)} / {duration(run.wall_s)}"


def _slo(run: RunSummary) -> str:
    return f"beyond SLO ({100 * run.slo_percentile:g} % in {run.slo_latency_s:g} s)"


def _utilisation(run: RunSummary) -> str:
    load = run.host_utilisation
    return f"{load.min:.2f}/{load.mean:.2f}/{load.max:.2f}"


def _reconfigurations(run: RunSummary) -> str:
    parts = [
        f"{run.reconfigurations[kind]} {word}" for kind, word in _RECONFIGURATIONS.items() if run.reconfigurations.get(kind)
    ]
    return "\n".join(parts) or "none"
