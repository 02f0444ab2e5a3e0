"""A run in a few sentences, for people who do not read tables."""

from __future__ import annotations

from springtide.report.summary import RunSummary
from springtide.report.units import count, duration, share


def in_words(run: RunSummary) -> list[str]:
    """How many rows there were, how late they were, what was changed, and what it took beside the most hosts all the time."""
    latency = f"Half of them were through within {duration(run.latency.p50_s)}, 90 % within {duration(run.latency.p90_s)}"
    kept = "kept" if run.slo_kept else "missed"
    slo = f"{100 * run.slo_percentile:g} % within {run.slo_latency_s:g} s was asked for, and {kept}"
    core_s, peak_core_s = 3600 * run.core_hours, 3600 * run.peak_core_hours
    return [
        f"{count(run.rows.source)} rows came in {duration(run.duration_s)}; {count(run.rows.dropped)} of them were lost.",
        f"{latency}: {slo}.",
        f"Executors came or went {_changes(run, 'hosts_added', 'hosts_released')} times, shards moved "
        f"{_changes(run, 'shards_moved')} times, replicas changed {_changes(run, 'scale_outs', 'scale_ins')} times.",
        f"It took {core_s:,.0f} core-seconds; {run.max_hosts} executors all the time are {peak_core_s:,.0f}"
        f" ({share(1 - core_s / peak_core_s)} saved).",
    ]


def _changes(run: RunSummary, *kinds: str) -> int:
    return sum(run.reconfigurations.get(kind, 0) for kind in kinds)
