"""The application that policies are compared on when the user has not described one: visits of a site, joined with sessions."""

from __future__ import annotations

from springtide.model.application import SLO, Application, Edge, Grouping, KeyDistribution, Operator


def visits(latency_s: float = 5.0) -> Application:
    """Four operators that take 1.08 ms of a core for each row of the trace, and the latency that nine rows of ten have to keep.

    Rows are parsed, counted per visitor, joined with what is known of the visitor's session (one row of five, and the
    counts that have changed), and written. Visitors are skewed: the most frequent of 10,000 makes 3.7 % of all rows.
    """
    visitors = KeyDistribution(keys=10_000, zipf=0.8)
    return Application(
        name="visits",
        operators=(
            Operator(name="parse", service_time_s=0.0003, grouping=Grouping.SHUFFLE),
            Operator(name="count", service_time_s=0.0005, shards=64, keys=visitors, state_bytes_per_shard=8_000_000),
            Operator(name="join", service_time_s=0.0004, shards=64, keys=visitors, state_bytes_per_shard=16_000_000),
            Operator(name="write", service_time_s=0.0003, grouping=Grouping.SHUFFLE),
        ),
        edges=(
            Edge(upstream="parse", downstream="count"),
            Edge(upstream="parse", downstream="join", selectivity=0.2),
            Edge(upstream="count", downstream="join", selectivity=0.2),
            Edge(upstream="join", downstream="write"),
        ),
        slo=SLO(latency_s=latency_s),
    )
