"""More of everything never makes latency worse in the same trace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import chain, operator, phases, simulate

from springtide.model.application import Grouping, KeyDistribution
from springtide.model.observation import Latency

GROUPINGS = [Grouping.SHARED, Grouping.SHUFFLE, Grouping.KEY]
LOADS = st.lists(st.tuples(st.floats(0, 900), st.sampled_from([5.0, 20.0, 60.0])), min_size=1, max_size=6)
FIGURES = ("mean_s", "p10_s", "p50_s", "p90_s", "p99_s", "max_s", "violation_share")


def latency_with(replicas: int, grouping: Grouping, loads: list[tuple[float, float]], cores: int = 64) -> Latency:
    # Shards of equal weight, in a number that all replica counts divide: with others, one replica more can leave the
    # busiest as busy as it was.
    fields = {"grouping": grouping, "shards": 24, "max_replicas": 24, "keys": KeyDistribution(keys=24 * 1000)}
    app = chain(operator("first", service_time_s=0.01, **fields), operator("second", service_time_s=0.004, **fields))
    return simulate(app, phases(*loads, (0.0, 2000.0)), replicas=replicas, cores=cores).latency


@pytest.mark.parametrize("grouping", GROUPINGS)
@given(loads=LOADS)
@settings(max_examples=25)
def test_more_replicas_never_make_latency_worse(grouping, loads):
    before = latency_with(1, grouping, loads)
    for replicas in (2, 4, 8, 24):
        after = latency_with(replicas, grouping, loads)
        for figure in FIGURES:
            # A bin of the histogram is 0.2 % wide.
            assert getattr(after, figure) <= getattr(before, figure) * 1.003 + 1e-6, (figure, replicas)
        before = after


@given(loads=LOADS)
@settings(max_examples=25)
def test_more_cores_never_make_latency_worse(loads):
    before = latency_with(8, Grouping.SHUFFLE, loads, cores=1)
    for cores in (2, 4, 16):
        after = latency_with(8, Grouping.SHUFFLE, loads, cores=cores)
        for figure in FIGURES:
            assert getattr(after, figure) <= getattr(before, figure) * 1.003 + 0.5, (figure, cores)
        before = after
