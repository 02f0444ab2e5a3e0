"""A backend does everything that is asked of it at once, or refuses with one line and does nothing."""

from __future__ import annotations

import pytest
from worlds import backend, chain, operator, steady

from springtide.errors import InvalidValue
from springtide.model.action import AddHosts, MoveShards, ReleaseHosts, SetReplicas
from springtide.model.application import Grouping


@pytest.mark.parametrize(("actions", "complaint"), [
    ([SetReplicas("first", ("host-0", "host-9"), before=1)], "host-9"),
    ([SetReplicas("frist", ("host-0",), before=1)], "first"),
    ([SetReplicas("first", ("host-0",) * 99, before=1)], "at most"),
    ([MoveShards("first", {0: 0})], "no shard 0"),
    ([MoveShards("keyed", {99: 0})], "no shard 99"),
    ([MoveShards("keyed", {0: 7})], "replica 7"),
    ([AddHosts(("host-0",))], "exists"),
    ([AddHosts(("host-8", "host-9"))], "pool"),
    ([ReleaseHosts(("host-0", "host-1"))], "host"),
    ([ReleaseHosts(("host-1",))], "host-1"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_and_changes_nothing(actions, complaint):
    app = chain(operator("first"), operator("keyed", grouping=Grouping.KEY, shards=8))
    world = backend(app, steady(10, seconds=60), hosts=2, max_hosts=3)
    world.clock.advance_to(10.0)
    before = world.observe()
    with pytest.raises(InvalidValue, match=complaint):
        # Something harmless beside it must not happen either.
        world.apply([SetReplicas("first", ("host-0", "host-1"), before=1), *actions])
    world.apply([])
    world.clock.advance_to(20.0)
    after = world.observe()
    assert after.requested == before.requested
    assert after.observed == before.observed
    assert not any(after.reconfigurations.values())
