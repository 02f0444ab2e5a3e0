"""Generators: the same seed gives the same trace, and what was asked for is what arrives."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.errors import InvalidValue
from springtide.workload.generators import GENERATORS, bursty_day, constant, day_cycle, generate, spikes, steps
from springtide.workload.traces import Trace


def autocorrelation(trace: Trace, lag: int) -> float:
    return float(np.corrcoef(trace.counts[:-lag], trace.counts[lag:])[0, 1])


def test_constant() -> None:
    made = constant(rate_per_s=50, duration_s=10, step_s=2)
    assert made.counts.tolist() == [100.0] * 5


def test_a_duration_is_rounded_up_to_whole_steps() -> None:
    assert constant(rate_per_s=1, duration_s=10, step_s=3).steps == 4


def test_steps_hold_each_level() -> None:
    made = steps(levels=(1, 5, 0), hold_s=2, step_s=0.5)
    assert made.counts.tolist() == [0.5] * 4 + [2.5] * 4 + [0.0] * 4


def test_spikes_stand_in_the_middle_of_each_period() -> None:
    made = spikes(base_per_s=1, spike_per_s=10, every_s=6, width_s=2, duration_s=12)
    assert made.counts.tolist() == [1, 1, 10, 10, 1, 1] * 2


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0.1, 50), st.floats(0, 1), st.integers(1, 9), st.floats(0.05, 7))
def test_spikes_bring_the_same_rows_whatever_the_step(  # the law by which a spike may split a step
    base: float, spike: float, every_s: float, share: float, periods: int, step_s: float
) -> None:
    made = spikes(base, spike, every_s, share * every_s, every_s * periods, step_s)
    fine = spikes(base, spike, every_s, share * every_s, made.duration_s, made.duration_s)
    assert made.rows == pytest.approx(fine.rows, rel=1e-9, abs=1e-6)


@given(st.floats(1, 10), st.floats(1, 1e6))
def test_a_day_cycle_without_noise_has_its_mean_and_peak(peak_to_mean: float, mean_per_s: float) -> None:
    made = day_cycle(0, mean_per_s=mean_per_s, peak_to_mean=peak_to_mean, noise=0, days=2)
    assert made.mean_rate_per_s == pytest.approx(mean_per_s, rel=1e-6)
    assert made.peak_rate_per_s == pytest.approx(mean_per_s * peak_to_mean, rel=1e-3)
    assert 14 <= made.counts[:1440].argmax() / 60 <= 16 or peak_to_mean < 1.001


def test_noise_around_the_day_cycle_is_as_large_as_asked() -> None:
    noisy = day_cycle(5, noise=0.2, peak_to_mean=1, days=30)
    assert noisy.counts.std() / noisy.counts.mean() == pytest.approx(0.2, rel=0.1)
    assert noisy.mean_rate_per_s == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_bursty_day_looks_like_real_traffic(seed: int) -> None:
    """Compared with the NASA launch of 13 July 1995 and the Twitter stream: see SOURCES.md."""
    made = bursty_day(seed)
    assert (made.steps, made.step_s) == (86_400, 1.0)
    assert made.mean_rate_per_s == pytest.approx(1000, rel=0.01)
    assert 3 < made.peak_rate_per_s / made.mean_rate_per_s < 8
    assert np.array_equal(made.counts, np.rint(made.counts))
    assert autocorrelation(made, lag=60) > 0.9
    within_minutes = made.counts.reshape(-1, 60)
    assert (within_minutes.var(axis=1) / within_minutes.mean(axis=1)).mean() > 1.2  # more than Poisson alone
    peak_hour = made.resampled(60).counts.argmax() / 60
    assert 9 <= peak_hour <= 21


def test_a_bursty_day_can_be_plain_poisson() -> None:
    made = bursty_day(1, mean_per_s=50, peak_to_mean=1, noise=0, bursts=0, flash_to_mean=0)
    assert made.counts.var() / made.counts.mean() == pytest.approx(1, abs=0.05)
    assert bursty_day(1, mean_per_s=0).rows == 0.0


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_has_defaults_and_the_seed_decides(name: str) -> None:
    made, again, other = generate(name, 3), generate(name, 3), generate(name, 4)
    assert made.name == name
    assert np.array_equal(made.counts, again.counts)
    has_chance = "seed" in inspect.signature(GENERATORS[name]).parameters
    assert np.array_equal(made.counts, other.counts) is not has_chance


@settings(max_examples=20)
@given(st.integers(0, 2**63))
def test_any_seed_will_do(seed: int) -> None:
    assert day_cycle(seed).rows == day_cycle(seed).rows > 0


# Specs


def test_a_spec_sets_parameters() -> None:
    assert generate("constant:rate_per_s=7,duration_s=3", seed=0).counts.tolist() == [7.0] * 3
    assert generate("steps:levels=100/500/50,hold_s=600", seed=0).rows == 650 * 600
    assert generate("steps: levels = 3 , hold_s = 1 ,", seed=0).counts.tolist() == [3.0]
    assert generate("bursty-day:bursts=0,mean_per_s=10", seed=1).mean_rate_per_s == pytest.approx(10, rel=0.02)


def test_a_seed_in_the_spec_wins() -> None:
    assert generate("day-cycle:seed=3", seed=1).rows == day_cycle(3).rows


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bursty_day", "there is no generator 'bursty_day'; did you mean 'bursty-day'?"),
        ("qqq", "there is no generator 'qqq'; known: bursty-day, constant, day-cycle, spikes, stable-stand-in, steps"),
        ("", "there is no generator ''; known: "),
        ("constant:rate=5", "generator constant: there is no parameter 'rate'; did you mean 'rate_per_s'?"),
        ("constant:seed=5", "generator constant: there is no parameter 'seed'"),
        ("constant:rate_per_s", "generator constant: rate_per_s must be a number, not ''"),
        ("constant:rate_per_s=many", "generator constant: rate_per_s must be a number, not 'many'"),
        ("constant:rate_per_s=1,rate_per_s=2", "generator constant: rate_per_s is given twice"),
        ("constant:rate_per_s=-1", "generator constant: rate_per_s must lie between 0 and 1e+12, not -1"),
        ("constant:rate_per_s=nan", "generator constant: rate_per_s must lie between 0 and 1e+12, not nan"),
        ("constant:duration_s=0", "generator constant: duration_s must be above 0, not 0.0"),
        ("constant:duration_s=1e30", "more than 50,000,000 steps; choose longer steps"),
        ("constant:step_s=inf", "generator constant: step_s must be above 0, not inf"),
        ("steps:levels=1/x", "generator steps: levels must be numbers split by '/', as in 100/500/50, not '1/x'"),
        ("steps:levels=1/-2", "generator steps: levels must lie between 0 and 1e+12, not -2"),
        ("steps:hold_s=0", "generator steps: hold_s must be above 0, not 0"),
        ("steps:hold_s=4e7", "more than 50,000,000 steps"),
        ("spikes:every_s=0", "generator spikes: every_s must be above 0, not 0"),
        ("spikes:every_s=10,width_s=11", "generator spikes: width_s must lie between 0 and 10, not 11"),
        ("day-cycle:peak_to_mean=0.5", "generator day-cycle: peak_to_mean must lie between 1 and 10, not 0.5"),
        ("day-cycle:noise=2", "generator day-cycle: noise must lie between 0 and 1, not 2"),
        ("day-cycle:days=0", "generator day-cycle: days must be above 0, not 0"),
        ("day-cycle:seed=-1", "generator day-cycle: seed must be 0 or more, not -1"),
        ("bursty-day:bursts=2.5", "generator bursty-day: bursts must be a whole number, not '2.5'"),
        ("bursty-day:bursts=-1", "generator bursty-day: bursts must lie between 0 and 1000, not -1"),
        ("bursty-day:burst=1", "generator bursty-day: there is no parameter 'burst'; did you mean 'bursts'?"),
    ],
)
def test_a_wrong_spec_is_answered_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        generate(spec, seed=0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_of_no_levels_is_refused() -> None:
    with pytest.raises(InvalidValue, match="levels must name at least one rate"):
        steps(levels=())
