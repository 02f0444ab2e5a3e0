"""The laws of replayed rows: every part of a range is the same rows, and times and numbers are inverse to one another."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.model.application import KeyDistribution
from springtide.workload.loading import load
from springtide.workload.rows import VALUES, ReplayedRows, cumulative_rows
from springtide.workload.traces import Trace


def trace_of(counts: list[float], step_s: float = 1.0) -> Trace:
    return Trace(name="t", step_s=step_s, counts=np.array(counts))


def rows_of(
    trace: Trace, speed_up: float = 1.0, keys: KeyDistribution | None = None, payload_bytes: int = 0, seed: int = 0
) -> ReplayedRows:
    return ReplayedRows(
        step_s=trace.step_s,
        cumulative=cumulative_rows(trace),
        speed_up=speed_up,
        keys=keys or KeyDistribution(),
        payload_bytes=payload_bytes,
        seed=seed,
    )


def all_of(rows: ReplayedRows) -> np.ndarray:
    return np.arange(rows.total_rows)


small_traces = st.builds(
    trace_of,
    st.lists(st.floats(min_value=0, max_value=30), min_size=1, max_size=20),
    st.floats(min_value=0.01, max_value=100),
)
distributions = st.builds(
    KeyDistribution,
    keys=st.integers(min_value=1, max_value=50),
    zipf=st.floats(min_value=0, max_value=3),
    shuffles_per_minute=st.sampled_from([0.0, 1.0, 30.0]),
)
small_rows = st.builds(
    rows_of,
    small_traces,
    speed_up=st.floats(min_value=0.1, max_value=1000),
    keys=distributions,
    payload_bytes=st.integers(min_value=0, max_value=40),
    seed=st.integers(min_value=0, max_value=2**70),
)


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=200))
def test_the_whole_rows_are_those_of_the_trace_at_every_step(counts: list[float]) -> None:
    trace = trace_of(counts)
    cumulative = cumulative_rows(trace)
    assert cumulative[0] == 0
    assert np.all(np.diff(cumulative) >= 0)
    assert np.abs(cumulative[1:] - np.cumsum(trace.counts)).max() <= 0.5 + 1e-6


@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=50))
def test_whole_counts_are_kept_exactly(counts: list[int]) -> None:
    rows = rows_of(trace_of([float(count) for count in counts]))
    assert rows.total_rows == sum(counts)
    assert np.diff(rows.cumulative).tolist() == counts


@given(small_rows, st.data())
def test_any_part_of_a_range_made_alone_is_the_same_rows(rows: ReplayedRows, data: st.DataObject) -> None:
    whole = rows.batch(0, rows.total_rows)
    cuts = data.draw(st.lists(st.integers(min_value=0, max_value=rows.total_rows), max_size=5))
    edges = [0, *sorted(cuts), rows.total_rows]
    for first, after in pairwise(edges):
        part = pickle.loads(pickle.dumps(rows.between(first, after))).batch(first, after)
        for name, column in whole.items():
            np.testing.assert_array_equal(part[name], column[first:after], err_msg=name)


@given(small_rows, st.integers(min_value=0, max_value=10**6))
def test_rows_can_be_asked_for_in_any_order(rows: ReplayedRows, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(rows.total_rows)
    np.testing.assert_array_equal(rows.keys_of(order), rows.keys_of(all_of(rows))[order])
    np.testing.assert_array_equal(rows.values_of(order), rows.values_of(all_of(rows))[order])


@given(small_rows)
def test_rows_are_offered_in_order_within_their_step(rows: ReplayedRows) -> None:
    offered_at_s = rows.offered_at_s(all_of(rows))
    assert np.all(np.diff(offered_at_s) >= 0)
    edges_s = np.arange(rows.cumulative.size) * rows.step_s / rows.speed_up
    per_step = np.histogram(offered_at_s, edges_s)[0]
    assert per_step.tolist() == np.diff(rows.cumulative).tolist()


@given(small_rows, st.floats(min_value=0, max_value=1.1))
def test_the_rows_before_a_moment_are_those_offered_before_it(rows: ReplayedRows, share: float) -> None:
    offered_at_s = rows.offered_at_s(all_of(rows))
    for moment_s in (share * rows.duration_s, *offered_at_s[:5], *np.nextafter(offered_at_s[:5], np.inf)):
        assert rows.rows_before(moment_s) == np.count_nonzero(offered_at_s < moment_s)


@given(small_rows)
def test_nothing_is_offered_before_the_start_and_all_by_the_end(rows: ReplayedRows) -> None:
    assert rows.rows_before(-1.0) == rows.rows_before(0.0) == 0
    assert rows.rows_before(rows.duration_s) == rows.rows_before(math.inf) == rows.total_rows


def test_rows_are_evenly_spread_and_come_sooner_with_a_speed_up() -> None:
    trace = trace_of([4, 0, 2], step_s=60.0)
    assert rows_of(trace).offered_at_s(np.arange(6)).tolist() == [0, 15, 30, 45, 120, 150]
    fast = rows_of(trace, speed_up=60)
    assert fast.offered_at_s(np.arange(6)).tolist() == [0, 0.25, 0.5, 0.75, 2, 2.5]
    assert fast.duration_s == 3.0
    assert [fast.rows_before(moment_s) for moment_s in (0.2, 0.9, 1.9, 2.1, 3.0)] == [1, 4, 4, 5, 6]


def test_rates_below_one_row_per_step_are_not_lost() -> None:
    rows = rows_of(trace_of([0.25] * 40))
    assert rows.total_rows == 10
    assert np.diff(rows.offered_at_s(all_of(rows))) == pytest.approx([4.0] * 9, abs=1.0)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.1])
def test_keys_occur_as_often_as_zipf_says(exponent: float) -> None:
    keys, total = 200, 400_000
    rows = rows_of(trace_of([total]), keys=KeyDistribution(keys=keys, zipf=exponent), seed=3)
    found = np.sort(np.bincount(rows.keys_of(all_of(rows)), minlength=keys))[::-1]
    frequencies = np.arange(1, keys + 1.0) ** -exponent
    expected = total * frequencies / frequencies.sum()
    assert np.abs(found - expected).max() <= 5 * np.sqrt(expected.max())
    assert found.sum() == total


@given(small_rows)
def test_keys_and_values_lie_within_their_bounds(rows: ReplayedRows) -> None:
    keys, values = rows.keys_of(all_of(rows)), rows.values_of(all_of(rows))
    assert np.all((keys >= 0) & (keys < rows.keys.keys))
    assert np.all((values >= 0) & (values < VALUES))


def test_a_shuffle_changes_the_hottest_key_and_only_then() -> None:
    keys = KeyDistribution(keys=1000, zipf=1.5, shuffles_per_minute=2.0)
    rows = rows_of(trace_of([1000.0] * 240, step_s=1.0), speed_up=2.0, keys=keys, seed=1)
    seen = rows.keys_of(all_of(rows))
    hottest = [int(np.bincount(second).argmax()) for second in np.split(seen, 240)]
    # A shuffle every 30 s of the replay is one every 60 s of a trace replayed twice as fast.
    epochs = [set(hottest[begin : begin + 60]) for begin in range(0, 240, 60)]
    assert [len(epoch) for epoch in epochs] == [1, 1, 1, 1]
    assert len(set.union(*epochs)) == 4


def test_without_shuffles_the_hottest_key_stays_but_depends_on_the_seed() -> None:
    keys = KeyDistribution(keys=1000, zipf=1.5)
    trace = trace_of([5000.0] * 4, step_s=600.0)
    hottest = [
        [int(np.bincount(part).argmax()) for part in np.split(rows.keys_of(all_of(rows)), 4)]
        for rows in (rows_of(trace, keys=keys, seed=seed) for seed in range(3))
    ]
    assert [len(set(of_seed)) for of_seed in hottest] == [1, 1, 1]
    assert len({of_seed[0] for of_seed in hottest}) == 3


def test_values_are_spread_evenly_and_say_nothing_about_keys() -> None:
    rows = rows_of(trace_of([200_000]), keys=KeyDistribution(keys=100))
    keys, values = rows.keys_of(all_of(rows)), rows.values_of(all_of(rows))
    assert np.histogram(values, 10, (0, VALUES))[0] == pytest.approx(20_000, rel=0.05)
    assert abs(np.corrcoef(keys, values)[0, 1]) < 0.01
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.01


@given(small_rows)
def test_the_same_seed_gives_the_same_rows(rows: ReplayedRows) -> None:
    again = replace(rows).batch(0, rows.total_rows)
    for name, column in rows.batch(0, rows.total_rows).items():
        np.testing.assert_array_equal(again[name], column)


def test_another_seed_gives_other_rows() -> None:
    one, other = (rows_of(trace_of([1000]), payload_bytes=8, seed=seed).batch(0, 1000) for seed in (1, 2))
    assert one["offered_at_s"].tolist() == other["offered_at_s"].tolist()
    for name in ("key", "value", "payload"):
        assert np.mean(one[name] == other[name]) < 0.1  # type: ignore[literal-required]


def test_rows_stay_what_they_are_from_version_to_version() -> None:
    rows = rows_of(trace_of([1000]), keys=KeyDistribution(keys=100, zipf=1.0), payload_bytes=20, seed=7)
    batch = rows.batch(500, 503)
    assert batch["key"].tolist() == [85, 20, 22]
    assert batch["value"].tolist() == [779199, 949551, 496751]
    assert bytes(batch["payload"][0]) == b"79045c7736483ef37904"


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 100])
def test_payloads_are_as_long_as_asked_for(length: int) -> None:
    payloads = rows_of(trace_of([50]), payload_bytes=length).payloads_of(np.arange(50))
    assert payloads.shape == (50, length)
    assert set(payloads.tobytes()) <= set(b"0123456789abcdef")
    assert length < 15 or len({line.tobytes() for line in payloads}) == 50


def test_a_part_of_the_curve_is_as_small_as_its_rows_need() -> None:
    rows = rows_of(load("generator:bursty-day", seed=0))
    first = rows.rows_before(40_000)
    part = rows.between(first, first + 3000)
    assert part.cumulative.size < 10
    assert len(pickle.dumps(part)) < 1000
    assert part.between(first + 10, first + 20).keys_of(np.arange(first + 10, first + 20)).size == 10


def test_rows_beyond_the_curve_are_refused() -> None:
    rows = rows_of(trace_of([5.0] * 10))
    with pytest.raises(InvalidValue, match="there is no row 50: this curve has the rows from 0 on and before 50"):
        rows.keys_of(np.array([3, 50]))
    with pytest.raises(InvalidValue, match="there is no row 9: this curve has the rows from 10 on"):
        rows.between(10, 20).values_of(np.array([9]))
    with pytest.raises(InvalidValue, match="rows 20 to 51 are not among the rows 0 to 50"):
        rows.between(20, 51)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step_s": 0.0}, "step_s must be finite and above 0, not 0.0"),
        ({"speed_up": math.inf}, "speed_up must be finite and above 0, not inf"),
        ({"speed_up": 1e-320}, "makes the replay endless"),
        ({"seed": -1}, "seed must be 0 or more, not -1"),
        ({"payload_bytes": -1}, "payload_bytes must be 0 or more"),
        ({"cumulative": np.array([0])}, "at least one step"),
        ({"cumulative": np.array([0, 5, 4])}, "never fall"),
        ({"keys": KeyDistribution(shuffles_per_minute=1e300)}, "shuffles_per_minute of 1e\\+300 are too many"),
    ],
)
def test_impossible_rows_cannot_be_built(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        replace(rows_of(trace_of([1.0])), **changed)  # type: ignore[arg-type]


def test_a_trace_of_too_many_rows_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'t': 1e\\+16 rows are too many"):
        cumulative_rows(trace_of([1e16]))


def test_half_a_million_rows_take_well_under_a_second() -> None:
    rows = rows_of(
        load("generator:bursty-day", seed=0), keys=KeyDistribution(zipf=1.0, shuffles_per_minute=2), payload_bytes=50
    )
    spent_s = []
    for _ in range(3):
        begin_s = time.process_time()
        rows.batch(30_000_000, 30_500_000)
        spent_s.append(time.process_time() - begin_s)
    assert min(spent_s) < 1.0
