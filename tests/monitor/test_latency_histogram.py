"""Percentiles from bins, beside percentiles from all the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from numpy.typing import NDArray

from factories import application
from springtide.backends.simulator.kernel import _count_latency
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.backends.simulator.topology import new_simulation
from springtide.model.application import SLO
from springtide.model.observation import Latency
from springtide.monitor.latency_histogram import (
    BIN_RATIO,
    BINS,
    BINS_PER_UNIT,
    LARGEST_S,
    SMALLEST_S,
    LatencyCounts,
    no_latency,
    summarise,
)

SHARES = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "slo_s": 0.95}


def counted(latencies_s: NDArray[np.float64], rows: NDArray[np.float64], slo_s: float = 5.0) -> LatencyCounts:
    """What a backend counts: bin 0 holds the shortest, bin b those between BIN_RATIO^(b - 1) and BIN_RATIO^b times it."""
    above = np.maximum(1.0, latencies_s / SMALLEST_S)
    bins = np.where(above > 1.0, 1 + np.floor(np.log(above) * BINS_PER_UNIT), 0).astype(int)
    return LatencyCounts(
        rows=np.bincount(bins, weights=rows, minlength=BINS),
        sum_s=float((latencies_s * rows).sum()),
        max_s=float(latencies_s.max()),
        late_rows=float(rows[latencies_s > slo_s].sum()),
    )


@st.composite
def weighted_rows(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    count = draw(st.integers(1, 500))
    typical_s, spread = draw(st.floats(1e-3, 1e5)), draw(st.floats(0.0, 3.0))
    latencies = np.clip(typical_s * np.exp(spread * rng.standard_normal(count)), 2 * SMALLEST_S, LARGEST_S / 2)
    return latencies, rng.uniform(0.001, 1000.0, count)


@given(weighted_rows())
def test_percentiles_are_within_a_bin_of_those_of_all_rows(rows: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    latencies, weights = rows
    found = summarise(counted(latencies, weights), 0.95)

    for what, share in SHARES.items():
        exact = np.quantile(latencies, share, weights=weights, method="inverted_cdf")
        assert getattr(found, what) == pytest.approx(exact, rel=0.002), what
    assert found.rows == pytest.approx(weights.sum())
    assert found.mean_s == pytest.approx(np.average(latencies, weights=weights))
    assert found.max_s == latencies.max()
    assert found.violation_share == pytest.approx(weights[latencies > 5.0].sum() / weights.sum())
    assert found.p10_s <= found.p50_s <= found.p90_s <= found.p99_s <= found.max_s


@given(weighted_rows(), weighted_rows())
def test_two_intervals_together_are_as_if_counted_in_one(
    one: tuple[NDArray[np.float64], NDArray[np.float64]], other: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> None:
    apart = counted(*one).plus(counted(*other))
    together = counted(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))

    found, expected = summarise(apart, 0.9), summarise(together, 0.9)
    assert found.max_s == expected.max_s
    assert found.rows == pytest.approx(expected.rows)
    assert found.mean_s == pytest.approx(expected.mean_s)
    assert found.violation_share == pytest.approx(expected.violation_share)
    assert found.p50_s == pytest.approx(expected.p50_s, rel=0.0021)


def test_no_row_no_latency() -> None:
    assert summarise(no_latency(), 0.9) == Latency()


def test_rows_that_took_no_time_at_all_count_as_the_shortest_time() -> None:
    found = summarise(counted(np.array([0.0, 1e-5]), np.array([3.0, 1.0])), 0.9)

    assert found.rows == 4
    assert found.max_s == 1e-5
    assert found.p99_s == 1e-5  # never above the longest
    assert found.mean_s == pytest.approx(0.25e-5)


def test_one_row_is_every_percentile() -> None:
    found = summarise(counted(np.array([7.0]), np.array([0.3])), 0.5)

    for what in (*SHARES, "max_s", "mean_s"):
        assert getattr(found, what) == pytest.approx(7.0, rel=0.002)


def test_bins_cover_all_that_can_happen_in_a_run() -> None:
    assert pytest.approx(LARGEST_S, rel=0.01) == SMALLEST_S * BIN_RATIO ** (BINS - 2)
    assert BINS < 20_000
    assert math.isclose(math.exp(1 / BINS_PER_UNIT), BIN_RATIO)


def test_rounding_does_not_make_more_rows_late_than_there_are() -> None:
    rows = counted(np.array([0.4]), np.array([0.3])).rows
    rounded = LatencyCounts(rows=rows, sum_s=0.12, max_s=0.4, late_rows=0.3 + 1e-12)

    assert summarise(rounded, 0.9).violation_share == 1.0


# --- the simulator's kernel sorts rows into bins by itself, and must agree about where they begin -------------------------

KERNEL_SLO_S = 0.3


def counted_by_kernel(latencies_s: Sequence[float], rows: Sequence[float] | None = None) -> LatencyCounts:
    """Rows of these latencies (one each unless told) as the kernel counts them."""
    app = application("work", slo=SLO(latency_s=KERNEL_SLO_S))
    state = new_simulation(app, SimulatorSettings(), steps=1, host_slots=1)
    for latency_s, count in zip(latencies_s, rows or [1.0] * len(latencies_s), strict=True):
        _count_latency(state, float(latency_s), float(count), 0.0)
    totals = state.totals[0]
    return LatencyCounts(
        rows=state.latency_rows,
        sum_s=float(totals["latency_s"]),
        max_s=float(totals["latency_max_s"]),
        late_rows=float(totals["late_rows"]),
    )


@budget(max_examples=25)
@given(weighted_rows())
def test_the_kernel_counts_rows_where_percentiles_look_for_them(
    sample: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    latencies, weights = sample
    found = summarise(counted_by_kernel(latencies.tolist(), weights.tolist()), 0.95)

    for what, share in SHARES.items():
        exact = np.quantile(latencies, share, weights=weights, method="inverted_cdf")
        assert getattr(found, what) == pytest.approx(exact, rel=0.002), what
    assert found.rows == pytest.approx(weights.sum())
    assert found.mean_s == pytest.approx(np.average(latencies, weights=weights))
    assert found.max_s == latencies.max()
    assert found.violation_share == pytest.approx(weights[latencies > KERNEL_SLO_S].sum() / weights.sum())


def test_no_bin_is_off_by_more_than_a_thousandth() -> None:
    """All over the range; a tenth of the rows take longer, so that the maximum does not give the bin's value away."""
    for latency_s in np.geomspace(1.01 * SMALLEST_S, 0.99 * LARGEST_S, 1001):
        found = summarise(counted_by_kernel([latency_s, 3.0 * latency_s], rows=[9.0, 1.0]), 0.9)
        assert found.p50_s == pytest.approx(latency_s, rel=0.00101)


def test_adding_nothing_changes_nothing_and_leaves_the_parts_alone() -> None:
    some = counted_by_kernel([0.1, 0.2, 5.0])
    before = some.rows.copy()
    total = no_latency().plus(some).plus(no_latency())

    assert summarise(total, 0.9) == summarise(some, 0.9)
    assert some.plus(some).rows.sum() == 6.0
    assert (some.rows == before).all()
    assert no_latency().rows.sum() == 0.0


def test_latencies_too_short_to_tell_apart_count_as_the_shortest() -> None:
    found = summarise(counted_by_kernel([0.0, 1e-6, 9e-5, 0.5]), 0.9)

    assert found.p10_s == found.p50_s == SMALLEST_S
    assert found.p99_s == pytest.approx(0.5, rel=0.002)
    assert found.rows == 4.0


def test_no_percentile_is_above_the_longest_latency_there_was() -> None:
    assert summarise(counted_by_kernel([0.0, 0.0]), 0.9).p99_s == 0.0
    assert summarise(counted_by_kernel([3e-5]), 0.9).p50_s == 3e-5
    assert summarise(counted_by_kernel([0.2501]), 0.9).p99_s <= 0.2501


def test_latencies_beyond_the_range_are_counted_in_the_last_bin() -> None:
    counts = counted_by_kernel([0.5, 1e9, 1e12])

    assert counts.rows[BINS - 1] == 2.0
    found = summarise(counts, 0.9)
    assert found.p10_s == pytest.approx(0.5, rel=0.002)
    assert found.p99_s == pytest.approx(LARGEST_S, rel=0.01)
    assert found.max_s == 1e12


def test_a_row_is_late_only_beyond_what_the_slo_allows() -> None:
    slo_s = KERNEL_SLO_S
    assert summarise(counted_by_kernel([0.1, slo_s, slo_s, 0.29]), 0.9).violation_share == 0.0
    assert summarise(counted_by_kernel([0.1, slo_s + 1e-9, 9.0], rows=[6.0, 1.0, 3.0]), 0.9).violation_share == pytest.approx(
        0.4
    )
    assert summarise(counted_by_kernel([0.4, 9.0]), 0.9).violation_share == 1.0
