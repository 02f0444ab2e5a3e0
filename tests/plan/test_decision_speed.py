"""How long a decision takes: the best of several, since this machine may be busy with something else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from observations import view

from factories import allocation, application, operator
from springtide.model.allocation import Allocation, HostType, Pool
from springtide.model.protocols import View
from springtide.plan.placement.subset_sum import smallest_sum_reaching
from springtide.plan.registry import make_policy, policies


def best_of(runs: int, work: Callable[[], object]) -> float:
    def once() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    return min(once() for _ in range(runs))


ROUNDS = 12  # after which a policy has found what suits a load that does not change


def views(*, operators: int, shards: int, hosts: int) -> Callable[[int, Allocation | None], View]:
    """One interval after the other of a load that half the hosts could carry, with whatever is placed."""
    app = application(*(operator(f"q{i}", shards=shards) for i in range(operators)))
    loads = {o.name: 0.5 * hosts * 4 / operators for o in app.operators}
    pool = Pool(host=HostType(cores=4), min_hosts=hosts, max_hosts=hosts)
    first = allocation(app, hosts=hosts)
    return lambda index, placed: view(app, placed or first, loads, pool=pool, index=index)


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize(
    ("operators", "shards", "hosts", "limit_s"), [(35, 16, 10, 0.005), (400, 64, 50, 0.05)], ids=["small", "large"]
)
def test_holding_is_quick(name: str, operators: int, shards: int, hosts: int, limit_s: float) -> None:
    seen_at = views(operators=operators, shards=shards, hosts=hosts)
    policy = make_policy(name, {})
    memory, placed = policy.start(), None
    for index in range(ROUNDS):
        decision, memory = policy.decide(seen_at(index, placed), memory)
        placed = decision.planned
    seen = seen_at(ROUNDS, placed)
    assert policy.decide(seen, memory)[0].planned is seen.requested
    assert best_of(7, lambda: policy.decide(seen, memory)) < limit_s


@pytest.mark.parametrize("items", [64, 1000])
def test_choosing_among_many_items_is_quick(items: int) -> None:
    chance = random.Random(7)
    loads = [chance.random() for _ in range(items)]
    assert best_of(7, lambda: smallest_sum_reaching(loads, 0.3 * sum(loads))) < 0.01
