"""From counters to an observation: the arithmetic that all backends share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import observation, shard_loads
from springtide.errors import InvalidValue
from springtide.monitor.interval import IntervalCounts, operator_observations


def counts(operators: int = 1, *, replicas: tuple[int, ...] = (2,), **columns: Any) -> IntervalCounts:
    """Operators o0, o1, ... that counted nothing but what the test says, with so many replicas each."""
    after = np.cumsum(replicas)
    values: dict[str, Any] = {
        "names": [f"o{i}" for i in range(operators)],
        "service_time_s": np.full(operators, 0.01),
        "replica_busy_s": np.zeros(int(after[-1])),
        "replica_first": after - np.array(replicas),
        "replica_after": after,
        "shards": [shard_loads(4) for _ in range(operators)],
    }
    for what in ("offered_rows", "processed_rows", "emitted_rows", "dropped_rows", "backlog_rows", "age_s"):
        values[what] = np.zeros(operators)
    return IntervalCounts(**{**values, **{name: np.asarray(column, np.float64) for name, column in columns.items()}})


def test_a_busy_minute() -> None:
    seen = operator_observations(
        counts(
            offered_rows=[900],
            processed_rows=[600],
            emitted_rows=[1200],
            dropped_rows=[100],
            backlog_rows=[200],
            age_s=[1500],
            service_time_s=[0.05],
            replica_busy_s=[24, 6],
        ),
        interval_s=60.0,
    )["o0"]

    assert (seen.offered_rows, seen.processed_rows, seen.emitted_rows) == (900, 600, 1200)
    assert (seen.dropped_rows, seen.backlog_rows) == (100, 200)
    assert seen.service_time_s == 0.05
    assert seen.latency_s == pytest.approx(1500 / 600)
    assert seen.replica_utilisation.tolist() == pytest.approx([0.4, 0.1])
    assert seen.utilisation == seen.busy_share == pytest.approx(0.25)
    assert seen.costs is None
    assert seen.backlog_s == pytest.approx(200 * 0.05 / 2)  # both replicas work it off


def test_an_idle_minute() -> None:
    """Nothing was measured: the service time is what is known, and nothing had an age."""
    seen = operator_observations(counts(backlog_rows=[50]), interval_s=60.0)["o0"]

    assert seen.service_time_s == 0.01
    assert seen.latency_s == 0
    assert seen.utilisation == 0
    assert seen.backlog_s == pytest.approx(50 * 0.01 / 2)


def test_rounding_below_zero_counts_as_nothing() -> None:
    seen = operator_observations(counts(processed_rows=[-1e-12], backlog_rows=[-1e-9], dropped_rows=[-1e-13]), interval_s=10.0)[
        "o0"
    ]

    assert (seen.processed_rows, seen.backlog_rows, seen.dropped_rows, seen.backlog_s) == (0, 0, 0, 0)


def test_every_operator_gets_its_own_replicas() -> None:
    busy = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    seen = operator_observations(counts(3, replicas=(1, 3, 2), replica_busy_s=busy), interval_s=10.0)

    assert list(seen) == ["o0", "o1", "o2"]
    assert [o.replica_utilisation.tolist() for o in seen.values()] == [
        pytest.approx([0.1]),
        pytest.approx([0.2, 0.3, 0.4]),
        pytest.approx([0.5, 0.6]),
    ]
    assert [o.utilisation for o in seen.values()] == pytest.approx([0.1, 0.3, 0.55])


def test_replicas_that_are_switched_off_do_not_count() -> None:
    """Slots of the pool that are off lie between those that are on; what they did before counts for nobody."""
    seen = operator_observations(
        replace(
            counts(2, replicas=(1, 1)),
            replica_busy_s=np.array([1.0, 9.0, 9.0, 2.0, 9.0]),
            replica_first=np.array([0, 3]),
            replica_after=np.array([1, 4]),
        ),
        interval_s=10.0,
    )
    assert [o.utilisation for o in seen.values()] == pytest.approx([0.1, 0.2])


@given(
    busy=st.lists(st.floats(0.0, 60.0), min_size=1, max_size=8),
    processed=st.floats(1.0, 1e6),
    backlog=st.floats(0.0, 1e6),
)
def test_more_replicas_work_off_a_backlog_in_less_time(busy: list[float], processed: float, backlog: float) -> None:
    def seen(replicas: int) -> float:
        made = counts(
            replicas=(replicas,),
            processed_rows=[processed],
            backlog_rows=[backlog],
            replica_busy_s=[sum(busy) / replicas] * replicas,
        )
        return operator_observations(made, interval_s=60.0)["o0"].backlog_s

    assert seen(2) * 2 == pytest.approx(seen(1))
    assert seen(8) <= seen(4)


def test_what_is_observed_cannot_be_changed() -> None:
    seen = operator_observations(counts(), interval_s=60.0)["o0"]
    with pytest.raises(ValueError, match="read-only"):
        seen.replica_utilisation[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        seen.shards.rows[0] = 1.0


def test_an_observation_lasts() -> None:
    with pytest.raises(InvalidValue, match="must last"):
        observation(start_s=5.0, end_s=5.0)
