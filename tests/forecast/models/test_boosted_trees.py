"""Trees as arrays: they say what the library that grew them says."""

from __future__ import annotations

import numpy as np
import pytest

from springtide.errors import InvalidValue
from springtide.forecast.lagged.boosting import Boosting, forest_of
from springtide.forecast.lagged.trees import Forest, stacked


def samples(count: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    features = chance.standard_normal((count, 6))
    values = np.where(features[:, 0] > 0.2, features[:, 1] ** 2, np.sin(3 * features[:, 2])) + 5.0
    return features, values + 0.05 * chance.standard_normal(count)


@pytest.mark.parametrize(("depth", "count"), [(1, 300), (3, 300), (4, 2000), (5, 2000)])
def test_a_forest_says_what_scikit_learn_says(depth: int, count: int) -> None:
    """Small samples make trees that end early, here and there."""
    features, values = samples(count)
    boosting = Boosting(trees=25, depth=depth, least_samples=20)
    regressor = boosting.regressor(seed=3).fit(features, values)
    elsewhere = 3.0 * np.random.default_rng(9).standard_normal((500, 6))
    ours = stacked([forest_of(regressor, depth)]).sums(elsewhere[:, None, :])[:, 0]
    assert ours == pytest.approx(regressor.predict(elsewhere), abs=1e-6)


def test_a_rate_at_a_threshold_goes_left_and_one_above_it_right() -> None:
    forest = Forest(features=np.array([[1]], np.int32), thresholds=np.array([[2.0]]), leaves=np.array([[10.0, 20.0]]))
    places = np.array([[[0.0, 2.0], [0.0, np.nextafter(2.0, 3.0)]]])
    assert stacked([forest]).sums(places).tolist() == [[10.0, 20.0]]


def test_forests_of_different_sizes_are_evaluated_together_each_for_its_row() -> None:
    forests = []
    for seed, (trees, depth) in enumerate([(5, 2), (12, 4), (1, 1)]):
        features, values = samples(400, seed=seed)
        forests.append(Boosting(trees=trees, depth=depth).grown(features, values, seed))
    forests.append(forests[0].first(0))
    places = np.random.default_rng(1).standard_normal((4, 7, 6))
    at_once = stacked(forests).sums(places)
    for i, forest in enumerate(forests):
        assert at_once[i] == pytest.approx(stacked([forest]).sums(places[i : i + 1])[0], abs=1e-12)
    assert not at_once[3].any()


def test_growing_is_the_same_every_time() -> None:
    features, values = samples(500)
    first, second = (Boosting(trees=10).grown(features, values, seed=4) for _ in range(2))
    assert np.array_equal(first.leaves, second.leaves)
    assert np.array_equal(first.thresholds, second.thresholds)


def test_trees_that_are_too_deep_to_evaluate_are_refused() -> None:
    with pytest.raises(InvalidValue, match="1 to 5 deep, not 6"):
        Boosting(depth=6)
