from dataclasses import replace

from guard_stories import APPLICATION, allocations, placed, unhurried, why_nots, with_replicas
from hypothesis import given
from hypothesis import strategies as st

from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.change import change
from springtide.model.decision import Decision
from springtide.plan.guards.partial import accept, keep_hosts, refuse

NAMES = [o.name for o in APPLICATION.operators]


def test_only_the_accepted_operator_changes() -> None:
    base, wanted = placed(2), placed(2, parse=4, count=3)
    merged = accept(base, wanted, operators={"parse"}, hosts=())
    assert merged.operators["parse"] == wanted.operators["parse"]
    assert merged.operators["count"] == base.operators["count"]


def test_a_host_that_still_holds_something_stays_although_its_release_is_accepted() -> None:
    base, wanted = placed(2), placed(1)
    merged = accept(base, wanted, operators={"parse"}, hosts={"host-1"})
    assert merged.hosts == ("host-0", "host-1")
    assert merged.operators["count"].replica_hosts == ("host-1",)


def test_a_host_comes_with_the_accepted_operator_that_needs_it() -> None:
    base, wanted = placed(1), placed(3, parse=3)
    merged = accept(base, wanted, operators={"parse"}, hosts=())
    assert merged.hosts == ("host-0", "host-1", "host-2")


def test_a_new_host_that_nobody_uses_comes_only_if_it_is_accepted() -> None:
    base = placed(1)
    wanted = base.with_hosts(("host-0", "host-1", "host-2"))
    assert accept(base, wanted, operators=NAMES, hosts={"host-2"}).hosts == ("host-0", "host-2")


def test_everything_accepted_is_what_was_wanted() -> None:
    base, wanted = placed(2), placed(["host-1", "host-5"], parse=3)
    merged = accept(base, wanted, operators=NAMES, hosts={"host-0", "host-5"})
    assert merged == wanted


@unhurried
@given(allocations(), allocations(), st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from([f"host-{i}" for i in range(7)])))
def test_a_partly_accepted_plan_is_valid(base: Allocation, wanted: Allocation, operators: set[str], hosts: set[str]) -> None:
    merged = accept(base, wanted, operators=operators, hosts=hosts)
    merged.check(APPLICATION)
    assert set(change(base, merged).operators) <= operators


@unhurried
@given(allocations(), allocations(), st.sets(st.sampled_from(NAMES)))
def test_every_difference_from_the_plan_has_its_why_not(base: Allocation, wanted: Allocation, operators: set[str]) -> None:
    decision = Decision(planned=wanted, reason="a test")
    refused = refuse(decision, base, "test", operators=dict.fromkeys(operators, "it may not"), hosts={})
    said = " ".join(why_nots(refused))
    missing = change(refused.planned, wanted)
    assert all(name in said for name in missing.operators)
    assert all(f"add {host}" in said for host in missing.hosts_added)
    assert all(f"release {host}" in said for host in missing.hosts_released)
    assert bool(missing) == bool(refused.why_not)


def test_hosts_follow_the_operators_that_were_refused() -> None:
    base = placed(2)
    wanted = replace(base, hosts=("host-0", "host-2"), operators={**base.operators, "count": _one_replica_on("host-2")})
    refused = refuse(Decision(planned=wanted, reason="a test"), base, "test", operators={"count": "it may not"}, hosts={})
    assert refused.planned == base
    assert why_nots(refused) == [
        "test: not move 8 shards of count, because it may not",
        "test: not add host-2, because it would have served nothing but count",
        "test: not release host-1, because it still serves count",
    ]


def test_a_kept_host_keeps_what_is_on_it() -> None:
    base, wanted = placed(3, parse=3), placed(2, parse=3)
    kept = keep_hosts(base, wanted, at_least=3)
    assert kept.hosts == ("host-0", "host-1", "host-2")
    assert kept.operators["parse"] == base.operators["parse"]


def test_a_kept_host_keeps_its_part_of_what_is_left_of_an_operator() -> None:
    base, wanted = placed(4, count=8), placed(2, count=4)
    kept = keep_hosts(base, wanted, at_least=3)
    assert len(kept.hosts) == 3
    assert kept.operators["count"].replicas == 4
    assert sorted(map(kept.operators["count"].replica_hosts.count, kept.hosts)) == [1, 1, 2]
    assert kept.operators["count"].replica_hosts.count("host-2") == 1


def test_the_fullest_of_the_hosts_to_be_released_is_kept() -> None:
    base = with_replicas(placed(3), "parse", "host-0", "host-2", "host-2")
    assert keep_hosts(base, placed(1), at_least=2).hosts == ("host-0", "host-2")


def test_the_replica_whose_shards_are_still_on_the_kept_host_stays_there() -> None:
    base = Allocation(("host-0", "host-1"), {**placed(1).operators, "count": _two_replicas("host-0", "host-1")})
    wanted = Allocation(("host-0",), {**placed(1).operators, "count": _two_replicas("host-0", "host-0")})
    assert keep_hosts(base, wanted, at_least=2) == base


@unhurried
@given(allocations(), allocations(), st.integers(1, 7))
def test_keeping_hosts_is_valid_and_changes_no_number_of_replicas(base: Allocation, wanted: Allocation, at_least: int) -> None:
    kept = keep_hosts(base, wanted, at_least)
    kept.check(APPLICATION)
    assert len(kept.hosts) >= min(at_least, len({*base.hosts, *wanted.hosts}))
    assert not change(wanted, kept).replicas
    assert set(wanted.hosts) <= set(kept.hosts)


def _one_replica_on(host: str) -> OperatorAllocation:
    return OperatorAllocation((host,), (0,) * 8)


def _two_replicas(first: str, second: str) -> OperatorAllocation:
    return OperatorAllocation((first, second), (0, 1) * 4)
