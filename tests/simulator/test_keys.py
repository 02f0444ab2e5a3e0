"""Keys: how often each occurs, on which shard it falls, and what a shuffle changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from numpy.typing import NDArray
from worlds import Run, one_operator, simulate, steady

from springtide.backends.simulator.topology import KeySpace
from springtide.model.action import MoveShards, SetReplicas
from springtide.model.application import Grouping, KeyDistribution

FEW = KeyDistribution(keys=7, zipf=1.2)
APART = 41  # so many shards that each of the few keys has one of its own


def shard_of(key: int, shards: int) -> int:
    """SplitMix64's finaliser in whole numbers of any size, cut to 64 bits."""
    cut = 2**64 - 1
    x = (key + 0x9E3779B97F4A7C15) & cut
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & cut
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & cut
    return (x ^ (x >> 31)) % shards


def zipf(keys: int, exponent: float) -> list[float]:
    """The frequency of the most frequent key, of the next, and so on."""
    weights = [1.0 / rank**exponent for rank in range(1, keys + 1)]
    return [w / math.fsum(weights) for w in weights]


class NotRandom:
    """Chance that deals the ranks out in a known order."""

    def __init__(self, order: NDArray[np.int64]) -> None:
        self._order = order

    def permutation(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[self._order]


@budget(max_examples=30)
@given(
    keys=st.integers(1, 500),
    exponent=st.sampled_from([0.0, 0.5, 1.0, 1.7]),
    shards=st.integers(1, 64),
    order=st.randoms(use_true_random=False),
)
def test_shares_of_shards_are_the_sums_of_their_keys_frequencies(keys: int, exponent: float, shards: int, order: Any) -> None:
    rank_of_key = list(range(keys))
    order.shuffle(rank_of_key)
    space: Any = KeySpace(KeyDistribution(keys=keys, zipf=exponent), shards, NotRandom(np.array(rank_of_key)))

    wanted = [0.0] * shards
    frequencies = zipf(keys, exponent)
    for key in range(keys):
        wanted[shard_of(key, shards)] += frequencies[rank_of_key[key]]
    assert space.shares() == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    assert space.shares().sum() == pytest.approx(1.0, rel=1e-12)


def test_a_steep_zipf_makes_one_shard_hot() -> None:
    """With an exponent of 2 the first of very many keys has 6 / pi^2 of all rows."""
    steep = KeySpace(KeyDistribution(keys=100_000, zipf=2.0), 1024, np.random.default_rng(0))

    assert steep.shares().max() == pytest.approx(6 / math.pi**2, abs=0.01)


def test_uniform_keys_give_nearly_equal_shards() -> None:
    """10,000 keys thrown on 16 shards: no shard is further off than chance explains (chi-squared, 15 degrees, p = 0.001)."""
    keys, shards = 10_000, 16
    shares = KeySpace(KeyDistribution(keys=keys), shards, np.random.default_rng(0)).shares()

    assert shares == pytest.approx(np.full(shards, 1 / shards), rel=0.1)
    assert (keys * shards * (shares - 1 / shards) ** 2).sum() < 37.7


def test_a_shuffle_gives_other_keys_the_same_frequencies() -> None:
    """Each key has a shard of its own, so shares are frequencies: the same ones, on the same shards, in another order."""
    space = KeySpace(FEW, APART, np.random.default_rng(3))
    before = space.shares()
    orders = set()
    for _ in range(20):
        space.shuffle()
        after = space.shares()
        assert np.sort(after) == pytest.approx(np.sort(before), rel=1e-12)
        assert (np.flatnonzero(after) == sorted(shard_of(k, APART) for k in range(FEW.keys))).all()
        orders.add(tuple(np.argsort(-after)[: FEW.keys]))

    assert len(orders) == 20  # of 5,040
    assert np.sort(before)[-FEW.keys :][::-1] == pytest.approx(zipf(FEW.keys, FEW.zipf))


def test_every_key_is_the_hottest_now_and_then() -> None:
    space = KeySpace(FEW, APART, np.random.default_rng(5))
    hottest = set()
    for _ in range(60):
        space.shuffle()
        hottest.add(int(space.shares().argmax()))

    assert hottest == {shard_of(k, APART) for k in range(FEW.keys)}


# --- in the simulator -----------------------------------------------------------------------------------------------------


def shuffled(shuffles_per_minute: float, *, seconds: int = 60, every_s: float = 1.0, **world: Any) -> Run:
    """100 rows a second of the few keys, each on a shard of its own."""
    keys = KeyDistribution(keys=FEW.keys, zipf=FEW.zipf, shuffles_per_minute=shuffles_per_minute)
    app = one_operator(grouping=Grouping.KEY, shards=APART, keys=keys, service_time_s=0.001)
    return simulate(app, steady(100, seconds=seconds), every_s=every_s, **world)


def shares_of(run: Run) -> NDArray[np.float64]:
    return np.array([o.shards.rows / o.offered_rows for o in run.of("work")])


def changes_s(run: Run) -> list[float]:
    """When the shares of the shards changed."""
    shares = shares_of(run)
    changed = np.flatnonzero(np.abs(np.diff(shares, axis=0)).max(axis=1) > 1e-9)
    return [run.observations[n].end_s for n in changed]


@pytest.mark.parametrize(
    ("shuffles_per_minute", "times_s"),
    [
        (0.0, []),
        (2.0, [30.0]),
        (6.0, [10.0, 20.0, 30.0, 40.0, 50.0]),
        (
            16.0,
            [4.0, 8.0, 12.0, 15.0, 19.0, 23.0, 27.0, 30.0, 34.0, 38.0, 42.0, 45.0, 49.0, 53.0, 57.0],
        ),  # n * 3.75, rounded up
    ],
)
def test_keys_are_shuffled_omega_times_a_minute(shuffles_per_minute: float, times_s: list[float]) -> None:
    assert changes_s(shuffled(shuffles_per_minute)) == times_s


def test_finer_steps_shuffle_at_finer_times() -> None:
    keys = KeyDistribution(keys=FEW.keys, zipf=FEW.zipf, shuffles_per_minute=16.0)
    app = one_operator(grouping=Grouping.KEY, shards=APART, keys=keys, service_time_s=0.001)
    run = simulate(app, steady(100, seconds=12, step_s=0.25), every_s=0.25, step_s=0.25, interval_s=0.25)

    assert changes_s(run) == pytest.approx([3.75, 7.5, 11.25])


def test_rows_follow_the_frequencies_of_the_present() -> None:
    run = shuffled(6.0)
    shares = shares_of(run)
    of_keys = zipf(FEW.keys, FEW.zipf)

    for now in shares:
        assert np.sort(now)[::-1][: FEW.keys] == pytest.approx(of_keys)
        assert now.sum() == pytest.approx(1.0)
    for epoch in np.split(shares, 6):
        assert epoch == pytest.approx(np.tile(epoch[0], (10, 1)))
    assert ((shares > 0) == (shares[0] > 0)).all()  # no key has ever come to a shard that was not its own


def test_a_key_stays_on_its_shard_whatever_the_shard_is_served_by() -> None:
    """The operator is scaled out and its shards are dealt to other replicas; keys do not notice."""
    script = {
        20.0: [SetReplicas("work", ("host-0",) * 3, before=1), MoveShards("work", {s: s % 3 for s in range(1, APART)})],
        40.0: [MoveShards("work", dict.fromkeys(range(APART), 2))],
    }
    left_alone, meddled_with = shuffled(5.0), shuffled(5.0, script=script)

    assert shares_of(meddled_with) == pytest.approx(shares_of(left_alone))
    assert changes_s(meddled_with) == [12.0, 24.0, 36.0, 48.0]


def test_a_shuffle_leaves_rows_that_wait_where_they_are() -> None:
    """Twenty seconds of overload, one shuffle in the middle: what waits in a shard is what came to it, less what was done."""
    keys = KeyDistribution(keys=FEW.keys, zipf=FEW.zipf, shuffles_per_minute=6.0)
    app = one_operator(grouping=Grouping.KEY, shards=APART, keys=keys, service_time_s=0.02)
    run = simulate(app, steady(100, seconds=20), every_s=1.0)

    waiting = np.zeros(APART)
    for seen in run.of("work"):
        waiting += seen.shards.rows - seen.shards.busy_s / 0.02
        assert seen.shards.backlog_rows == pytest.approx(waiting, abs=1e-6)
    assert waiting.sum() == pytest.approx(20 * 50.0)


def test_the_seed_decides_which_keys_are_hot() -> None:
    again, same, other = (shares_of(shuffled(6.0, seed=seed)) for seed in (1, 1, 2))

    assert (again == same).all()
    assert np.abs(again - other).max() > 0.1
