"""Weights of a mixture: what they favour, and what they never do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from springtide.forecast.mixing.blending import first_weights, improved, moments_of


def errors_of(rng: np.random.Generator, covariance: list[list[float]], count: int = 20_000) -> np.ndarray:
    """Errors of so many members with that covariance, at one distance."""
    return rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=count)[:, None, :]


def test_independent_members_weigh_by_the_inverse_of_their_variance() -> None:
    """Bates and Granger, Eq. for uncorrelated errors: w_1 = s_2^2 / (s_1^2 + s_2^2)."""
    errors = errors_of(np.random.default_rng(1), [[1.0, 0.0], [0.0, 3.0]])

    weights = first_weights(moments_of(errors))[0]

    np.testing.assert_allclose(weights, [0.75, 0.25], atol=0.02)


def test_a_copy_of_a_member_takes_its_share_from_that_member_only() -> None:
    errors = errors_of(np.random.default_rng(2), [[1.0, 0.0], [0.0, 1.0]])
    with_copy = np.concatenate([errors, errors[:, :, :1]], axis=2)

    weights = first_weights(moments_of(with_copy))[0]

    np.testing.assert_allclose(weights, [0.25, 0.5, 0.25], atol=0.02)


def test_a_member_that_is_never_wrong_gets_everything() -> None:
    errors = errors_of(np.random.default_rng(3), [[1.0, 0.0], [0.0, 1.0]])
    errors[:, :, 1] = 0.0

    assert first_weights(moments_of(errors))[0, 1] > 0.99


def test_errors_that_are_not_known_are_left_out() -> None:
    errors = errors_of(np.random.default_rng(4), [[1.0, 0.0], [0.0, 3.0]], count=100)
    with_gaps = np.concatenate([errors, np.full((50, 1, 2), np.nan)])

    np.testing.assert_allclose(moments_of(with_gaps), moments_of(errors))


def test_a_member_that_a_series_lacks_never_weighs_anything() -> None:
    weights = np.array([[[0.5, 0.5, 0.0]]])
    moments = np.array([[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]])

    assert improved(weights, moments, np.array([[True, True, False]]), 50)[0, 0, 2] == 0.0


@given(st.lists(st.floats(0.0, 1e6), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_weights_are_shares_whatever_the_errors(sizes: list[float], seed: int) -> None:
    errors = np.random.default_rng(seed).normal(size=(30, 2, len(sizes))) * np.array(sizes)

    weights = first_weights(moments_of(errors))

    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@given(st.integers(0, 2**32 - 1))
def test_the_mixture_is_not_worse_than_its_best_member_on_what_it_was_made_of(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(4, 4))
    moments = moments_of(errors_of(rng, (spread @ spread.T).tolist(), count=500))

    weights = first_weights(moments)[0]

    assert weights @ moments[0] @ weights <= 1.01 * np.diag(moments[0]).min()
