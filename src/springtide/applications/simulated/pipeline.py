"""The application that a trace is tried with when the user has not described one: parse, enrich, aggregate."""

from __future__ import annotations

from springtide.errors import require
from springtide.model.application import SLO, Application, Edge, Grouping, KeyDistribution, Operator

# Of the core time a row takes in all, the part that each operator takes.
_PARTS = {"parse": 0.2, "enrich": 0.3, "aggregate": 0.5}


def pipeline(peak_rows_per_s: float, cores_at_peak: float = 8.0, latency_s: float = 5.0) -> Application:
    """Three operators that together keep `cores_at_peak` cores busy when `peak_rows_per_s` rows arrive, nine rows of ten
    within `latency_s`."""
    require(cores_at_peak > 0, f"cores_at_peak must be above 0, not {cores_at_peak}")
    per_row_s = cores_at_peak / peak_rows_per_s if peak_rows_per_s > 0 else 0.001
    keys = KeyDistribution(keys=10_000, zipf=0.5)
    return Application(
        name="pipeline",
        operators=(
            Operator(name="parse", service_time_s=_PARTS["parse"] * per_row_s, grouping=Grouping.SHUFFLE),
            Operator(name="enrich", service_time_s=_PARTS["enrich"] * per_row_s, shards=32, keys=keys),
            Operator(
                name="aggregate",
                service_time_s=_PARTS["aggregate"] * per_row_s,
                shards=32,
                keys=keys,
                state_bytes_per_shard=8_000_000,
            ),
        ),
        edges=(Edge(upstream="parse", downstream="enrich"), Edge(upstream="enrich", downstream="aggregate")),
        slo=SLO(latency_s=latency_s, percentile=0.9),
    )
