"""Elasticutor's section 4.2: what cores cost, Algorithm 1 by hand and against every other way, the doubling of phi."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from observations import placed_on, view

from factories import application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool
from springtide.model.application import Edge, Grouping
from springtide.model.observation import HostState
from springtide.plan.executors.assignment import (
    Wants,
    allocation_cost,
    assign,
    assign_within,
    deallocation_cost,
    transition_bytes,
)
from springtide.plan.executors.hosting import available_cores, kept_hosts, room_per_host, within_room
from springtide.plan.executors.measuring import IntArray, data_bytes_per_s, measure, state_bytes
from springtide.plan.executors.scheduling import assigned
from springtide.plan.sizing.jackson import Network

unhurried = settings(deadline=None, max_examples=150)
PHI = 512 * 1024.0  # the paper's


def array(*rows: Sequence[int]) -> IntArray:
    return np.array(rows, dtype=np.intp)


def wants(
    wanted: Sequence[int],
    capacity: Sequence[int],
    state: Sequence[float] | None = None,
    intensity: Sequence[float] | None = None,
) -> Wants:
    return Wants(
        wanted=np.array(wanted, dtype=np.intp),
        capacity=np.array(capacity, dtype=np.intp),
        state_bytes=np.array(state if state is not None else [100.0] * len(wanted)),
        intensity=np.array(intensity if intensity is not None else [0.0] * len(wanted)),
    )


def cost(state: Sequence[float], before: IntArray, after: IntArray) -> float:
    """C(X | X~) on the same hosts."""
    return transition_bytes(np.array(state), before.sum(axis=1), before, after)


class TestCosts:
    @given(cores=st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda c: sum(c) > 1), state=st.floats(1, 1e9))
    def test_one_core_costs_what_the_transition_formula_says(self, cores: list[int], state: float) -> None:
        before = array(cores)
        for i in range(len(cores)):
            more = before.copy()
            more[0, i] += 1
            assert allocation_cost(state, before[0])[i] == pytest.approx(cost([state], before, more), abs=1e-6)
            if cores[i] > 0:
                fewer = before.copy()
                fewer[0, i] -= 1
                assert deallocation_cost(state, before[0])[i] == pytest.approx(cost([state], before, fewer), abs=1e-6)

    def test_by_hand(self) -> None:
        # X_j = 3, x_ij = 2 and 1: C+ = s (X - x) / (X (X + 1)) and C- = s (X - x) / (X (X - 1)), with s = 120.
        assert allocation_cost(120.0, np.array([2, 1, 0])).tolist() == pytest.approx([10, 20, 30])
        assert deallocation_cost(120.0, np.array([2, 1, 0]))[:2].tolist() == pytest.approx([20, 40])

    def test_inside_one_host_nothing_moves(self) -> None:
        assert allocation_cost(1e9, np.array([0, 5]))[1] == 0
        assert deallocation_cost(1e9, np.array([0, 5]))[1] == 0

    def test_what_was_on_hosts_that_go_leaves_as_well(self) -> None:
        # Of four cores three were on hosts that stay; a quarter of the state was on one that goes.
        moved = transition_bytes(np.array([100.0]), np.array([4]), array([3, 0]), array([3, 1]))
        assert moved == pytest.approx(25.0)


class TestAlgorithm1:
    def test_a_core_comes_from_whom_it_costs_least(self) -> None:
        # Executor 0 wants a second core on two full hosts. 1 would give one of three on host 0 (C- = 100 x 0 / 6 = 0),
        # 2 one of two on different hosts (C- = 100 x 1 / 2 = 50); a core of host 0 keeps executor 0 at home (C+ = 0).
        before = array([1, 0], [3, 0], [0, 2])
        after = assign_within(wants([2, 2, 1], [4, 2]), before, PHI)
        assert after is not None
        assert after.tolist() == [[2, 0], [2, 0], [0, 2]]

    def test_giving_and_getting_are_weighed_together(self) -> None:
        # Host 0 has executor 0's home, but its only giver is large: C- = 9000 x 1/2, against C+ = 100 / 2 for leaving home.
        before = array([1, 0], [1, 1], [0, 2])
        after = assign_within(wants([2, 1, 1], [2, 3], [100.0, 9000.0, 10.0]), before, PHI)
        assert after is not None
        assert after.tolist() == [[1, 1], [1, 1], [0, 1]]

    def test_cores_that_nobody_has_are_taken_first(self) -> None:
        before = array([1, 0], [2, 0])
        after = assign_within(wants([2, 1], [4, 4]), before, PHI)
        assert after is not None
        assert after.tolist() == [[2, 0], [2, 0]]

    def test_nobody_gives_below_what_it_needs(self) -> None:
        before = array([1, 0], [2, 1])
        after = assign_within(wants([3, 2], [3, 2]), before, PHI)
        assert after is not None
        assert after.sum(axis=1).tolist() == [3, 2]

    def test_the_most_data_intensive_chooses_first(self) -> None:
        # One core is left on the home of both; the other has to go to host 1.
        before = array([1, 0], [1, 0])
        for intensity, expected in (([9.0, 5.0], [[2, 0], [1, 1]]), ([5.0, 9.0], [[1, 1], [2, 0]])):
            after = assign_within(wants([2, 2], [3, 2], intensity=intensity), before, PHI)
            assert after is not None
            assert after.tolist() == expected

    def test_the_data_intensive_get_cores_at_home_only_whatever_that_costs(self) -> None:
        before = array([1, 0], [2, 1])
        for intensity, expected in ((2 * PHI, [[2, 0], [1, 1]]), (0.5 * PHI, [[1, 1], [2, 1]])):
            after = assign_within(wants([2, 2], [3, 2], [1.0, 1e6], [intensity, 0.0]), before, PHI)
            assert after is not None
            assert after.tolist() == expected

    def test_an_executor_that_has_lost_everything_starts_where_most_is_free_and_stays_there(self) -> None:
        before = array([0, 0, 0], [3, 1, 2])
        after, _ = assign(wants([2, 6], [4, 4, 4], intensity=[2 * PHI, 0.0]), before, PHI)
        assert after[0].tolist() == [0, 2, 0]

    def test_more_cores_than_there_are_cannot_be_asked_for(self) -> None:
        with pytest.raises(InvalidValue, match="5 cores cannot be assigned: there are 4"):
            wants([3, 2], [4])


class TestPhi:
    def test_phi_is_doubled_until_there_is_a_way(self) -> None:
        # 3 MB/s per core, and no core left at home: FAIL at 0.5, 1 and 2 MiB/s, found at 4 MiB/s.
        before = array([2, 0])
        asked = wants([3], [2, 2], intensity=[3e6])
        assert [assign_within(asked, before, PHI * 2**n) is None for n in range(4)] == [True, True, True, False]
        after, phi = assign(asked, before, PHI)
        assert after.tolist() == [[2, 1]]
        assert phi == 8 * PHI

    def test_only_as_many_leave_their_home_as_have_to(self) -> None:
        # Both homes are full and both executors above phi; once phi is 1 MiB/s, the lesser one may go to host 2.
        before = array([2, 0, 0], [0, 2, 0], [1, 0, 0])
        asked = wants([2, 3, 1], [3, 2, 2], intensity=[5e6, 0.9e6, 0.0])
        after, phi = assign(asked, before, PHI)
        assert after.tolist() == [[2, 0, 0], [0, 2, 1], [1, 0, 0]]
        assert phi == 2 * PHI

    def test_one_that_needs_more_than_a_host_has_leaves_in_the_end(self) -> None:
        after, phi = assign(wants([6], [4, 4], intensity=[1e9]), array([1, 0]), PHI)
        assert after.tolist() == [[4, 2]]
        assert phi > 1e9


@st.composite
def problems(draw: st.DrawFn, *, homeless: bool = True) -> tuple[Wants, IntArray]:
    """Up to three executors on up to three hosts of a few cores, as they are and as they want to be."""
    hosts, executors = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    least = 0 if homeless else 1
    cores = np.zeros((executors, hosts), dtype=np.intp)
    for j in range(executors):
        for _ in range(draw(st.integers(least, 3))):
            cores[j, draw(st.integers(0, hosts - 1))] += 1
    free = draw(st.lists(st.integers(0, 2), min_size=hosts, max_size=hosts))
    capacity = cores.sum(axis=0) + free
    capacity[0] += max(0, executors - capacity.sum())
    wanted = [1] * executors
    for _ in range(draw(st.integers(0, int(capacity.sum()) - executors))):
        wanted[draw(st.integers(0, executors - 1))] += 1
    state = draw(st.lists(st.sampled_from([0.0, 1.0, 7.0, 100.0]), min_size=executors, max_size=executors))
    intensity = draw(st.lists(st.sampled_from([0.0, 1e5, 1e6, 1e7]), min_size=executors, max_size=executors))
    return wants(wanted, capacity.tolist(), state, intensity), cores


def assignments(asked: Wants, before: IntArray) -> Iterable[IntArray]:
    """Every X that gives the first executor what it wants, wherever that is, with at most one core of another's."""
    hosts = len(asked.capacity)
    own = (split for split in itertools.product(range(asked.wanted[0] + 1), repeat=hosts) if sum(split) == asked.wanted[0])
    for row in own:
        for giver, i in [(0, 0), *itertools.product(range(1, len(before)), range(hosts))]:
            cores = before.copy()
            cores[giver, i] -= giver > 0
            cores[0] = row
            if (cores >= 0).all() and (cores.sum(axis=0) <= asked.capacity).all() and (cores.sum(axis=1) >= asked.wanted).all():
                yield cores


@given(problem=problems())
@unhurried
def test_every_assignment_is_within_equation_2(problem: tuple[Wants, IntArray]) -> None:
    asked, before = problem
    after, phi = assign(asked, before, PHI)
    assert (after >= 0).all()
    assert (after.sum(axis=0) <= asked.capacity).all()  # (a)
    assert (after.sum(axis=1) >= asked.wanted).all()  # (b)
    for j in np.flatnonzero((asked.intensity > phi) & (before.sum(axis=1) > 0)):  # (c), for the cores that are new
        gained = np.flatnonzero(after[j] > before[j])
        assert set(gained) <= {before[j].argmax()}
    # Only who has more than it needs gives, and nobody takes more than it asked for.
    assert (after.sum(axis=1) <= np.maximum(before.sum(axis=1), asked.wanted)).all()


@given(problem=problems(homeless=False))
@unhurried
def test_one_core_goes_where_it_costs_least(problem: tuple[Wants, IntArray]) -> None:
    """Algorithm 1 takes the cheapest core each time: with one core to find, nothing else that finds one is cheaper."""
    found, before = problem
    totals = before.sum(axis=1)
    wanted = np.maximum(1, totals - 1)  # all others can do with one less
    wanted[0] = totals[0] + 1
    assume(wanted.sum() <= found.capacity.sum())
    asked = wants(wanted.tolist(), found.capacity.tolist(), found.state_bytes.tolist())
    after, _ = assign(asked, before, PHI)
    best = min(cost(asked.state_bytes.tolist(), before, other) for other in assignments(asked, before))
    assert cost(asked.state_bytes.tolist(), before, after) == pytest.approx(best, abs=1e-9)


class TestHosting:
    def test_no_more_cores_than_the_pool_has_unless_replicas_can_share(self) -> None:
        pool = Pool(host=HostType(cores=4), max_hosts=2)

        def available(*loads: float) -> int:
            arrivals = [load * 1000 for load in loads]
            most = [99] * len(loads)
            queues = Network(source_per_s=1.0, arrivals_per_s=arrivals, service_per_s=[1000.0] * len(loads), most_servers=most)
            return available_cores(queues, pool)

        assert available(3.5, 2.5) == 8
        assert available(*[0.5] * 10) == 10  # 5 cores are busy, and 10 replicas share 8
        assert available(7.9, 5.0) == 8  # more than there is: 8 cores for two
        assert available(*[1.0] * 9) == 9  # too much as well, but each of nine needs a replica
        assert available(4.0, 4.0) == available(4.0 - 1e-12, 4.0) == 8  # as much as there is, whatever rounding makes of it
        assert room_per_host(pool, 2, 10) == 5

    def test_hosts_that_are_not_there_go_first_and_then_those_with_least_state(self) -> None:
        app = application(operator("a", shards=4))
        placed = placed_on(hosts=4, a=OperatorAllocation(("host-0",), (0, 0, 0, 0)))
        seen = view(app, placed, {"a": 1.0}, states={"host-1": HostState.STARTING})
        cores = array([5, 0, 1, 2], [0, 0, 1, 0])
        state = np.array([80.0, 1000.0])
        assert kept_hosts(seen, cores, state, 3) == ("host-0", "host-2", "host-3")
        assert kept_hosts(seen, cores, state, 2) == ("host-0", "host-2")  # 50 and 1,010 bytes against 20
        assert kept_hosts(seen, cores, state, 5) == ("host-0", "host-1", "host-2", "host-3", "host-4")

    def test_who_has_more_than_it_needs_makes_room_first_and_the_cheapest_of_them(self) -> None:
        asked = wants([1, 1, 3], [2, 4], [900.0, 10.0, 1.0])
        cores = array([1, 1], [1, 1], [2, 0])
        found = within_room(asked, cores, np.array([9, 9, 9]))
        # Four replicas on host 0, room for two: executor 1 gives (10 x 1 / 2), then 0 (900 x 1 / 2), for 2 needs all it has.
        assert found.tolist() == [[0, 1], [0, 1], [2, 0]]

    def test_an_executor_keeps_no_more_than_it_may_have(self) -> None:
        # C- is the lower the more cores there are on a host: s x 1 / 20 and then s x 1 / 12 on the first.
        assert within_room(wants([1], [4, 4]), array([4, 1]), np.array([3])).tolist() == [[2, 1]]


class TestMeasuring:
    APP = application(
        operator("parse", grouping=Grouping.SHUFFLE, row_bytes=100),
        operator("count", shards=10, max_replicas=7, state_bytes_per_shard=8, row_bytes=50),
        operator("one", shards=4, max_replicas=1, row_bytes=10),
        edges=(
            Edge(upstream="parse", downstream="count", selectivity=2.0),
            Edge(upstream="parse", downstream="one", selectivity=0.5),
        ),
    )
    PLACED = Allocation(
        ("host-0", "host-1"),
        {
            "parse": OperatorAllocation(("host-0", "host-1")),
            "count": OperatorAllocation(("host-0", "host-1", "host-1"), (0, 0, 0, 0, 1, 1, 1, 2, 2, 2)),
            "one": OperatorAllocation(("host-0",), (0, 0, 0, 0)),
        },
    )

    def test_executors_own_fixed_slices_and_share_the_load_by_their_shards_rows(self) -> None:
        seen = view(self.APP, self.PLACED, {"parse": 0.5, "count": [1.0] * 4 + [0.1] * 6, "one": 0.2})
        executors = measure(seen, 3)
        assert [(team.operator.name, team.first, team.count) for team in executors.teams] == [
            ("parse", 0, 1),
            ("count", 1, 3),
            ("one", 4, 1),
        ]
        count = executors.teams[1]
        assert [count.slice(e) for e in range(3)] == [slice(0, 3), slice(3, 6), slice(6, 10)]
        assert executors.network.offered == pytest.approx([0.5, 3.0, 1.2, 0.4, 0.2])
        assert list(executors.network.most_servers) == [64, 2, 2, 3, 1]  # 7 replicas and 10 shards for three
        assert state_bytes(seen, executors).tolist() == [0.0, 24.0, 24.0, 32.0, 0.0]

    def test_a_replica_belongs_to_whom_most_of_its_shards_are(self) -> None:
        executors = measure(view(self.APP, self.PLACED, {"count": 1.0}), 3)
        assert executors.teams[1].executor_of_replica.tolist() == [0, 1, 2]
        assert assigned(executors).tolist() == [[1, 1], [1, 0], [0, 1], [0, 1], [1, 0]]

    def test_data_goes_in_and_out_with_the_receivers_row_size(self) -> None:
        seen = view(self.APP, self.PLACED, {"parse": 1.0, "count": 2.0, "one": 0.5})
        # 1,000 rows/s of 100 bytes come in; the observation says that 1 row goes out for each, of 2.5 the application says.
        rates = data_bytes_per_s(seen, measure(seen)).tolist()
        assert rates == pytest.approx([1000 * (100 + (2.0 * 50 + 0.5 * 10) / 2.5), 2000 * 50, 500 * 10])

    def test_while_nothing_is_seen_every_replica_counts_the_same(self) -> None:
        executors = measure(view(self.APP, self.PLACED, {}), 2)
        assert executors.teams[1].shares() == pytest.approx([4 / 12 + 1 / 9, 5 / 9])  # of 4, 3 and 3 shards, the first five
        assert set(executors.network.offered) == {0.0}
