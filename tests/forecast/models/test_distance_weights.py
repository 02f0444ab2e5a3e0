"""Linear models by distance, and the choice among several by windows that were not learnt from."""

from __future__ import annotations

import numpy as np
import pytest

from springtide.forecast.lagged.distance_weights import DistanceWeights, chosen, regressed, stacked
from springtide.forecast.lagged.judging import Judge

TRUE = np.array([2.0, -1.0, 0.0])


def at(distance: int) -> tuple[np.ndarray, np.ndarray]:
    """Values that are `distance` times the same sum of features, and 3 more; the last feature never changes."""
    features = np.random.default_rng(distance).standard_normal((400, 3))
    features[:, 2] = 7.0
    return features, distance * (features @ TRUE) + 3.0


def test_with_hardly_a_penalty_the_weights_of_each_distance_are_found() -> None:
    (found,) = regressed(at, np.array([1, 4]), [1e-9], [np.zeros(3)])
    assert found.weights == pytest.approx(np.array([TRUE, 4 * TRUE]), abs=1e-6)
    assert found.offsets == pytest.approx([3.0, 3.0], abs=1e-6)


def test_a_great_penalty_leaves_what_they_are_drawn_towards() -> None:
    toward = np.array([0.5, 0.0, 0.0])
    nothing, half = regressed(at, np.array([1]), [1e9], [np.zeros(3), toward])
    assert nothing.weights[0] == pytest.approx(np.zeros(3), abs=1e-6)
    assert half.weights[0] == pytest.approx(toward, abs=1e-6)
    features, values = at(1)
    assert features @ half.weights[0] + half.offsets[0] == pytest.approx(
        features @ toward + np.mean(values - features @ toward)
    )


def test_a_distance_without_samples_says_nothing() -> None:
    (found,) = regressed(lambda _: (np.zeros((0, 3)), np.zeros(0)), np.array([1]), [0.1], [np.zeros(3)])
    assert not found.weights.any()
    assert not found.offsets.any()


def test_between_two_distances_weights_change_by_a_straight_line_and_beyond_the_last_not_at_all() -> None:
    model = DistanceWeights(distances=np.array([1, 5]), weights=np.array([[1.0], [3.0]]), offsets=np.array([0.0, 4.0]))
    sums = stacked([model]).sums(np.full((1, 4, 1), 10.0), np.array([[1, 2, 5, 9]]))
    assert sums[0] == pytest.approx([10.0, 16.0, 34.0, 34.0])


def test_each_distance_is_given_the_choice_that_did_best_there() -> None:
    truth = np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], (20, 1))
    truth[3, 2] = np.nan
    judge = Judge(distances=np.tile(np.arange(1, 7), (20, 1)), features=np.zeros((20, 6, 1)), changes=truth)
    near, far = np.full((20, 6), 1.1), np.full((20, 6), -1.1)
    assert judge.best_each([near, far]).tolist() == [0, 0, 0, 1, 1, 1]
    assert judge.best([far, near, np.nan_to_num(truth)]) == 2
    assert judge.errors(near)[0] == pytest.approx(0.01)  # a tenth of what the last rate is wrong by, squared
    ones, twos = (
        DistanceWeights(distances=np.arange(1, 7), weights=np.full((6, 1), value), offsets=np.zeros(6)) for value in (1.0, 2.0)
    )
    picked = chosen([ones, twos], judge.best_each([near, far]))
    assert picked.weights[:, 0].tolist() == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
