"""The laws of traces: no row is lost or invented, and an invalid trace cannot be built."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.workload.traces import MAX_STEPS, Trace, steps_in

counts = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=40)
seconds = st.floats(min_value=0.05, max_value=500)


def trace(values: list[float], step_s: float = 1.0, start: str | None = None) -> Trace:
    return Trace(name="t", step_s=step_s, counts=np.array(values), start=start)


traces = st.builds(trace, counts, seconds)


def test_a_trace_knows_its_size_and_rates() -> None:
    made = trace([60, 0, 120], step_s=60)
    assert (made.steps, made.duration_s, made.rows) == (3, 180.0, 180.0)
    assert (made.mean_rate_per_s, made.peak_rate_per_s) == (1.0, 2.0)


def test_counts_are_a_copy_that_cannot_be_written_to() -> None:
    given_counts = np.array([1.0, 2.0])
    made = Trace(name="t", step_s=1.0, counts=given_counts)
    given_counts[0] = 99.0
    assert made.counts[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        made.counts[0] = 5.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "needs a name"),
        ({"step_s": 0.0}, "'t': step_s must be finite and above 0, not 0.0"),
        ({"step_s": math.nan}, "'t': step_s"),
        ({"counts": np.array([])}, "'t': counts must be a list of at least one number"),
        ({"counts": np.ones((2, 2))}, "not of shape"),
        ({"counts": np.array([1.0, -2.0])}, "'t': the count of step 2 must be finite and 0 or more, not -2.0"),
        ({"counts": np.array([math.nan])}, "step 1 .* not nan"),
        ({"counts": np.array([math.inf])}, "step 1 .* not inf"),
        ({"gaps": -1}, "gaps must be 0 or more"),
        ({"start": "yesterday"}, "start must be an ISO time .* not 'yesterday'"),
    ],
)
def test_an_invalid_trace_cannot_be_built(changed: dict[str, object], message: str) -> None:
    valid: dict[str, object] = {"name": "t", "step_s": 1.0, "counts": np.array([1.0])}
    with pytest.raises(InvalidValue, match=message):
        Trace(**{**valid, **changed})  # type: ignore[arg-type]


@given(traces, seconds)
def test_resampling_conserves_rows(made: Trace, step_s: float) -> None:
    again = made.resampled(step_s)
    assert again.rows == pytest.approx(made.rows, rel=1e-12)
    assert made.duration_s <= again.duration_s * (1 + 1e-6)
    assert again.duration_s < made.duration_s + step_s * (1 + 1e-6)


@given(traces, seconds)
def test_resampling_never_raises_the_peak(made: Trace, step_s: float) -> None:
    assert made.resampled(step_s).peak_rate_per_s <= made.peak_rate_per_s * (1 + 1e-6) + made.rows * 1e-12


@given(traces, st.integers(min_value=1, max_value=20))
def test_finer_steps_and_back_is_the_same_trace(made: Trace, parts: int) -> None:
    back = made.resampled(made.step_s / parts).resampled(made.step_s)
    assert back.counts == pytest.approx(made.counts, rel=1e-9, abs=1e-12 * made.rows)


def test_coarser_steps_add_up_whole_counts_exactly() -> None:
    made = trace([1, 2, 3, 4, 5, 6], step_s=0.1)
    assert made.resampled(0.3).counts.tolist() == [6.0, 15.0]


def test_a_ratio_that_is_not_whole_splits_a_step() -> None:
    assert trace([10, 20], step_s=1.0).resampled(1.5).counts.tolist() == [20.0, 10.0]


def test_the_last_partial_step_is_kept() -> None:
    again = trace([1, 2, 3, 4, 5]).resampled(2.0)
    assert again.counts.tolist() == [3.0, 7.0, 5.0]
    assert again.duration_s == 6.0


def test_resampling_keeps_the_start_and_the_gaps() -> None:
    made = Trace(name="t", step_s=1.0, counts=np.ones(4), start="2024-05-01", gaps=2)
    again = made.resampled(2.0)
    assert (again.name, again.start, again.gaps) == ("t", "2024-05-01", 2)


@pytest.mark.parametrize("step_s", [0.0, -1.0, math.nan, math.inf])
def test_resampling_needs_a_positive_step(step_s: float) -> None:
    with pytest.raises(InvalidValue, match=f"trace 't': step_s must be above 0, not {step_s}"):
        trace([1]).resampled(step_s)


def test_resampling_refuses_more_steps_than_fit_in_memory() -> None:
    with pytest.raises(InvalidValue, match="more than 50,000,000 steps; choose longer steps"):
        trace([1] * 100).resampled(1e-9)


def test_steps_in_counts_a_partial_step_but_not_a_rounding_error() -> None:
    assert steps_in(10, 3, owner="x") == 4
    assert steps_in(0.3, 0.1, owner="x") == 3
    assert steps_in(MAX_STEPS, 1, owner="x") == MAX_STEPS


@given(traces, st.floats(min_value=0, max_value=1e6))
def test_scaling_multiplies_rows(made: Trace, factor: float) -> None:
    assert made.scaled(factor).rows == pytest.approx(made.rows * factor, rel=1e-12)


@given(traces.filter(lambda made: made.peak_rate_per_s > 1e-9), st.floats(min_value=1e-3, max_value=1e9))
def test_scaling_to_a_peak_reaches_it(made: Trace, peak_per_s: float) -> None:
    assert made.scaled_to_peak(peak_per_s).peak_rate_per_s == pytest.approx(peak_per_s)


@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf])
def test_scaling_refuses_a_senseless_factor(factor: float) -> None:
    with pytest.raises(InvalidValue, match=f"trace 't': the factor to scale by .* not {factor}"):
        trace([1]).scaled(factor)


def test_a_trace_without_rows_has_no_peak_to_scale() -> None:
    with pytest.raises(InvalidValue, match="trace 't': it has no rows"):
        trace([0, 0]).scaled_to_peak(10)
    with pytest.raises(InvalidValue, match="the peak to scale to must be finite and above 0, not 0"):
        trace([1]).scaled_to_peak(0)


@given(counts.filter(lambda values: len(values) > 1), seconds, st.data())
def test_cutting_in_two_loses_nothing(values: list[float], step_s: float, data: st.DataObject) -> None:
    made = trace(values, step_s)
    middle_s = data.draw(st.floats(min_value=0.001 * step_s, max_value=made.duration_s - 1.001 * step_s))
    parts = made.cut(0, middle_s), made.cut(middle_s, made.duration_s)
    assert np.concatenate([part.counts for part in parts]).tolist() == made.counts.tolist()


def test_a_cut_moves_the_start() -> None:
    made = trace([1, 2, 3, 4], step_s=1800, start="2024-05-01T23:00:00+00:00")
    part = made.cut(3600, 7200)
    assert part.counts.tolist() == [3.0, 4.0]
    assert part.start == "2024-05-02T00:00:00+00:00"
    assert trace([1, 2]).cut(1, 2).start is None


@pytest.mark.parametrize(("start_s", "end_s"), [(-1, 2), (0, 5), (2, 2), (3, 1), (4, 5), (math.nan, 2), (0, math.inf)])
def test_a_cut_outside_the_trace_is_refused(start_s: float, end_s: float) -> None:
    with pytest.raises(InvalidValue, match=r"trace 't': cannot cut from .* between 0 s and 4 s"):
        trace([1, 2, 3, 4]).cut(start_s, end_s)


def test_a_cut_that_holds_no_step_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no step begins between 61 s and 90 s; cut at least 60 s"):
        trace([1, 2], step_s=60).cut(61, 90)
