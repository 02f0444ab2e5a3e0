"""A policy that has nothing to do plans the very allocation that it was shown, so that nothing is compared or sent."""

from __future__ import annotations

import pytest
from observations import view

from factories import allocation, application, operator
from springtide.model.allocation import HostType, Pool
from springtide.plan.registry import make_policy, policies

ROUNDS = 12  # after which a policy has found what suits a load that does not change
OPERATORS, HOSTS, CORES = 35, 10, 4


@pytest.mark.parametrize("name", policies())
def test_a_load_that_does_not_change_is_held(name: str) -> None:
    app = application(*(operator(f"q{i}", shards=16) for i in range(OPERATORS)))
    loads = {o.name: 0.5 * HOSTS * CORES / OPERATORS for o in app.operators}
    pool = Pool(host=HostType(cores=CORES), min_hosts=HOSTS, max_hosts=HOSTS)
    policy = make_policy(name, {})
    memory, placed = policy.start(), allocation(app, hosts=HOSTS)
    for index in range(ROUNDS):
        decision, memory = policy.decide(view(app, placed, loads, pool=pool, index=index), memory)
        placed = decision.planned
    seen = view(app, placed, loads, pool=pool, index=ROUNDS)
    assert policy.decide(seen, memory)[0].planned is seen.requested
