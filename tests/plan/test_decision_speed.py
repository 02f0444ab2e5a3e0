"""How long a decision takes: the best of several, since this machine may be busy with something else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from observations import view

from factories import allocation, application, operator
from springtide.model.allocation import HostType, Pool
from springtide.model.protocols import View
from springtide.plan.placement.subset_sum import smallest_sum_reaching
from springtide.plan.registry import make_policy, policies


def best_of(runs: int, work: Callable[[], object]) -> float:
    def once() -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    return min(once() for _ in range(runs))


def calm_view(*, operators: int, shards: int, hosts: int) -> View:
    app = application(*(operator(f"q{i}", shards=shards) for i in range(operators)))
    loads = {o.name: 0.5 * hosts * 4 / operators for o in app.operators}
    return view(app, allocation(app, hosts=hosts), loads, pool=Pool(host=HostType(cores=4), max_hosts=hosts))


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize(
    ("operators", "shards", "hosts", "limit_s"), [(35, 16, 10, 0.001), (1000, 64, 100, 0.05)], ids=["small", "large"]
)
def test_holding_is_quick(name: str, operators: int, shards: int, hosts: int, limit_s: float) -> None:
    seen = calm_view(operators=operators, shards=shards, hosts=hosts)
    policy = make_policy(name, {})
    memory = policy.start()
    assert policy.decide(seen, memory)[0].planned is seen.requested
    assert best_of(7, lambda: policy.decide(seen, memory)) < limit_s


@pytest.mark.parametrize("items", [64, 1000])
def test_choosing_among_many_items_is_quick(items: int) -> None:
    chance = random.Random(7)
    loads = [chance.random() for _ in range(items)]
    assert best_of(7, lambda: smallest_sum_reaching(loads, 0.3 * sum(loads))) < 0.01
