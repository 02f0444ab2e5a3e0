"""What is read from a past at a distance."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_series import DAY, INTERVAL_S, cut, days

from springtide.errors import InvalidValue
from springtide.forecast.lagged.lags import NOW, Lags, lags_in
from springtide.forecast.lagged.samples import samples_of
from springtide.model.windows import Windows, windows_of


def of_one(lags: Lags, past: np.ndarray, distance: int) -> np.ndarray:
    return lags.of(past[None], np.array([[distance]]))[0, 0]


def test_the_last_rate_the_newest_ones_and_the_distance() -> None:
    past = np.array([5.0, 3.0, 4.0, 10.0])
    lags = lags_in(windows_of(np.r_[past, 0.0], interval_s=INTERVAL_S, past=4, future=1))
    assert (lags.newest, lags.stretches, lags.day, lags.week) == ((1, 2, 3), (3,), 0, 0)
    features = of_one(lags, past, 7)
    assert features[NOW] == 10.0
    assert features[1:4].tolist() == [-6.0, -7.0, -5.0]
    assert features[4:7] == pytest.approx([17 / 3 - 10, -7.0, 0.0])  # mean, least and greatest of the last three
    assert features[lags.of_distance] == 7.0
    assert len(features) == lags.count


def test_the_usual_rate_is_that_of_the_same_time_on_the_days_before() -> None:
    train, _ = cut(days(20), past=3 * DAY, future=DAY)
    lags = lags_in(train)
    past = train.past[0]
    for distance in (1, 5, DAY, DAY + 5):
        on_days = past.reshape(3, DAY)[:, (distance - 1) % DAY]
        assert of_one(lags, past, distance)[lags.usual] == pytest.approx(on_days.mean() - past[-1])


def test_a_past_without_a_day_or_a_week_has_none_of_their_features() -> None:
    counts = [lags_in(cut(days(20), past=past, future=4)[0]).count for past in (DAY - 1, DAY, 7 * DAY)]
    assert counts[0] < counts[1] < counts[2]


def test_a_higher_level_changes_only_the_last_rate() -> None:
    past = days(8)[: 7 * DAY]
    lags = lags_in(windows_of(days(9), interval_s=INTERVAL_S, past=7 * DAY, future=DAY))
    low, high = of_one(lags, past, 9), of_one(lags, past + 3.0, 9)
    assert high[NOW] == pytest.approx(low[NOW] + 3.0)
    assert np.delete(high, NOW) == pytest.approx(np.delete(low, NOW), abs=1e-9)


def test_features_of_a_row_are_those_at_the_same_place_of_the_series() -> None:
    rates = days(10)
    train, _ = cut(rates, past=2 * DAY, future=4)
    lags = lags_in(train)
    distances = np.array([[1, 3, 60]])
    in_series = lags.at(rates, np.array([300]), distances)
    assert lags.of(rates[None, 301 - 2 * DAY : 301], distances) == pytest.approx(in_series)


def test_too_short_a_past_is_refused() -> None:
    lags = lags_in(cut(days(4), past=20, future=4)[0])
    with pytest.raises(InvalidValue, match="20 past rates are needed, and there are 19"):
        lags.of(np.zeros((1, 19)), np.ones((1, 1), np.int64))


def test_windows_far_apart_still_give_a_sample_at_every_interval() -> None:
    """But none whose target was missing, and none whose past nobody has seen."""
    rates = np.arange(100.0) / 100
    windows = windows_of(rates, interval_s=INTERVAL_S, past=10, future=6, stride=5)
    future = windows.future.copy()
    future[np.isclose(future, 0.5)] = np.nan
    samples = samples_of(Windows(interval_s=INTERVAL_S, origins=windows.origins, past=windows.past, future=future))
    assert 49 not in samples.origins  # its next rate is the missing one
    assert set(range(9, 90)) - set(samples.origins.tolist()) == {49}
    assert np.isnan(samples.targets[50])
    assert np.array_equal(samples.series[samples.origins], rates[samples.origins])


def test_what_windows_do_not_show_is_no_past() -> None:
    rates = np.arange(100.0)
    windows = windows_of(rates, interval_s=INTERVAL_S, past=6, future=2, stride=20)
    with pytest.raises(InvalidValue, match="are too few to learn from"):
        samples_of(windows.every(4))
    assert samples_of(windows).origins.tolist() == [5, 6, 25, 26, 45, 46, 65, 66, 85, 86]


def test_distances_are_drawn_near_and_far_and_always_the_next() -> None:
    samples = samples_of(cut(days(10), past=20, future=DAY)[0])
    drawn = samples.distances(500, 5, np.random.default_rng(0))
    assert (drawn[:, 0] == 1).all()
    assert drawn.min() == 1
    assert drawn.max() == DAY
    assert 0.4 < np.mean(drawn[:, 1:] <= 7) < 0.65  # half of them, by the logarithm
