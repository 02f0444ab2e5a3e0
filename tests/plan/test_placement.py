"""First-fit-decreasing: no constraint is ever broken, neighbours attract, and few bins are enough."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from factories import application, operator
from springtide.model.application import Grouping
from springtide.plan.placement.packing import Bin, Placement, Unit, place

unhurried = settings(deadline=None)

CHAIN = application(
    operator("parse", grouping=Grouping.SHUFFLE), operator("count"), operator("rank"), operator("few", max_replicas=2)
)


def unit(cpu_cores: float, index: int = 0, operator: str = "parse", **fields: float) -> Unit:
    return Unit(operator=operator, index=index, cpu_cores=cpu_cores, **fields)


def free(host: str, cpu_cores: float = 1.0, units: dict[str, int] | None = None, **fields: float | bool) -> Bin:
    values = {"memory_bytes": 100.0, "network_bytes_per_s": 100.0, **fields}
    return Bin(host=host, cpu_cores=cpu_cores, units=units or {}, **values)


def by_index(placement: Placement) -> dict[int, str]:
    return {u.index: host for u, host in sorted(placement.hosts.items(), key=lambda item: item[0].index)}


def test_the_largest_goes_first_to_the_first_host_with_room() -> None:
    placement = place([unit(0.3, 0), unit(0.7, 1), unit(0.4, 2)], [free("a"), free("b")], (), CHAIN)
    assert by_index(placement) == {0: "a", 1: "a", 2: "b"}


def test_a_host_with_a_neighbour_comes_first() -> None:
    bins = [free("a"), free("b", units={"rank": 1}), free("c", units={"parse": 1})]
    assert place([unit(0.3, operator="count")], bins, (), CHAIN).hosts == {unit(0.3, operator="count"): "b"}


def test_what_was_just_placed_attracts_its_neighbours() -> None:
    placement = place([unit(0.6, 0, "parse"), unit(0.2, 1, "count")], [free("a", 0.5), free("b"), free("c")], (), CHAIN)
    assert by_index(placement) == {0: "b", 1: "b"}


def test_memory_and_network_are_constraints_too() -> None:
    bins = [free("a", memory_bytes=5.0), free("b", network_bytes_per_s=5.0), free("c")]
    assert by_index(place([unit(0.1, memory_bytes=10.0, network_bytes_per_s=10.0)], bins, (), CHAIN)) == {0: "c"}


def test_a_host_that_does_not_receive_takes_nothing() -> None:
    assert place([unit(0.1)], [free("a", receives=False)], (), CHAIN).unplaced == (unit(0.1),)


def test_spare_hosts_are_opened_in_order_and_only_when_needed() -> None:
    placement = place([unit(0.9, i) for i in range(3)], [free("a")], [free("b"), free("c"), free("d")], CHAIN)
    assert by_index(placement) == {0: "a", 1: "b", 2: "c"}
    assert placement.opened == ("b", "c")
    assert [b.host for b in placement.bins] == ["a", "b", "c"]


def test_what_fits_nowhere_is_said() -> None:
    placement = place([unit(1.5, 0), unit(0.5, 1)], [free("a")], [free("b")], CHAIN)
    assert by_index(placement) == {1: "a"}
    assert placement.unplaced == (unit(1.5, 0),)
    assert placement.opened == ()


def test_shards_are_on_no_more_hosts_than_their_operator_may_have_replicas() -> None:
    units = [unit(0.6, i, "few") for i in range(3)]
    placement = place(units, [free("a"), free("b"), free("c")], (), CHAIN)
    assert by_index(placement) == {0: "a", 1: "b"}
    assert place(units, [free("a", 2.0), free("b"), free("c")], (), CHAIN).unplaced == ()


def test_bins_know_what_is_left() -> None:
    (left,) = place([unit(0.25, memory_bytes=40.0)], [free("a", units={"parse": 1})], (), CHAIN).bins
    assert left == free("a", 0.75, memory_bytes=60.0, units={"parse": 2})
    assert left.minus(unit(0.25, memory_bytes=40.0)) == free("a", units={"parse": 1})


loads = st.integers(1, 100).map(lambda percent: percent / 100)


@unhurried
@given(st.lists(loads, min_size=1, max_size=8))
def test_few_more_bins_than_the_optimum(sizes: list[float]) -> None:
    """G. Dosa, 2007: first-fit-decreasing needs at most 11/9 OPT + 6/9 bins, and the bound is tight."""
    spare = [free(f"host-{i}") for i in range(len(sizes))]
    placement = place([unit(size, i) for i, size in enumerate(sizes)], [], spare, CHAIN)
    assert not placement.unplaced
    assert len(placement.opened) <= 11 / 9 * fewest_bins(sizes) + 6 / 9 + 1e-9


def fewest_bins(sizes: list[float]) -> int:
    """By brute force: each item into each bin that has room, or a new one."""

    def search(rest: list[float], rooms: tuple[float, ...], best: int) -> int:
        if len(rooms) >= best:
            return best
        if not rest:
            return len(rooms)
        for i, room in enumerate(rooms):
            if rest[0] <= room + 1e-9 and room not in rooms[:i]:
                best = search(rest[1:], (*rooms[:i], room - rest[0], *rooms[i + 1 :]), best)
        return search(rest[1:], (*rooms, 1.0 - rest[0]), best)

    return search(sorted(sizes, reverse=True), (), len(sizes) + 1)


units = st.builds(
    Unit,
    operator=st.sampled_from(["parse", "count", "rank", "few"]),
    index=st.integers(0, 10_000),
    cpu_cores=st.floats(0, 1.2),
    memory_bytes=st.floats(0, 60),
    network_bytes_per_s=st.floats(0, 60),
)
hosts = st.lists(
    st.builds(
        free,
        host=st.just("host"),
        cpu_cores=st.floats(-1, 3),
        units=st.dictionaries(st.sampled_from(["parse", "count", "rank"]), st.integers(1, 3)),
        receives=st.booleans(),
    ),
    max_size=5,
).map(lambda found: [replace(b, host=f"host-{i}") for i, b in enumerate(found)])


@unhurried
@given(units=st.lists(units, max_size=20, unique_by=lambda u: (u.operator, u.index)), bins=hosts, spare=st.integers(0, 3))
def test_no_constraint_is_ever_broken(units: list[Unit], bins: list[Bin], spare: int) -> None:
    extra = [free(f"new-{i}") for i in range(spare)]
    placement = place(units, bins, extra, CHAIN)
    assert {*placement.hosts, *placement.unplaced} == set(units)
    assert [b.host for b in placement.bins] == [b.host for b in bins] + list(placement.opened)
    for before, after in zip([*bins, *extra], placement.bins, strict=False):
        if before.cpu_cores != after.cpu_cores:
            assert before.receives
            assert min(after.cpu_cores, after.memory_bytes, after.network_bytes_per_s) >= -1e-6
    assert len({host for u, host in placement.hosts.items() if u.operator == "few"}) <= 2
