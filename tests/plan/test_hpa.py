"""Kubernetes' HorizontalPodAutoscaler with the documentation's own numbers, and stories on hosts of 4 cores, 20 s each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from observations import POOL, placed_on, play, view

from factories import allocation, application, operator
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, Pool
from springtide.model.application import Grouping
from springtide.model.decision import Decision
from springtide.model.observation import HostState
from springtide.plan.policies.hpa import HorizontalPodAutoscaler, HpaMemory, Pods

APP = application(operator("map", grouping=Grouping.SHUFFLE, max_replicas=400))
RULES = HorizontalPodAutoscaler()


def ready(count: int, utilisation: float, *, unready: int = 0, current: int | None = None) -> Pods:
    return Pods(ready=[utilisation] * count, unready=unready, current=count + unready if current is None else current)


def on(hosts: int) -> Allocation:
    """A replica for each core."""
    return allocation(APP, hosts=hosts, replicas={"map": 4 * hosts})


def story(rules: HorizontalPodAutoscaler, hosts: int, utilisations: Sequence[float], pool: Pool = POOL) -> list[Decision]:
    """All hosts as busy as told, in one interval after the other; each plan is carried out at once."""

    def told() -> Iterator[Decision]:
        memory = rules.start()
        placed = on(hosts)
        for index, utilisation in enumerate(utilisations):
            cores = utilisation * 4 * len(placed.hosts)
            decision, memory = rules.decide(view(APP, placed, {"map": cores}, index=index, pool=pool), memory)
            placed = decision.planned
            yield decision

    return list(told())


def sizes(decisions: Sequence[Decision]) -> list[int]:
    return [len(decision.planned.hosts) for decision in decisions]


# --- the formula ----------------------------------------------------------------------------------------------------


def test_twice_the_target_doubles_and_half_of_it_halves() -> None:
    """200m where 100m is wanted, and 50m."""
    rules = HorizontalPodAutoscaler(target_utilisation=0.1)
    assert rules.desired(ready(4, 0.2)) == 8
    assert rules.desired(ready(4, 0.05)) == 2


def test_fifty_pods_at_90_percent_of_75_become_sixty() -> None:
    """The example with which configurable tolerance was announced for Kubernetes 1.33."""
    assert HorizontalPodAutoscaler(target_utilisation=0.75).desired(ready(50, 0.9)) == 60


@pytest.mark.parametrize(("utilisation", "hosts"), [(0.88, 10), (0.89, 12), (0.72, 10), (0.71, 9), (0.80, 10)])
def test_a_tenth_more_or_less_than_the_target_is_tolerated(utilisation: float, hosts: int) -> None:
    assert RULES.desired(ready(10, utilisation)) == hosts


def test_the_mean_counts_and_not_the_busiest() -> None:
    assert RULES.desired(Pods(ready=[1.0, 0.6], unready=0, current=2)) == 2


def test_pods_that_are_not_ready_count_as_idle_when_it_is_about_growing() -> None:
    # 3 pods at 1.0 ask for 3.75; with the one that starts it is 0.75, below the target, and nothing is done.
    assert RULES.desired(ready(3, 1.0)) == 4
    assert RULES.desired(ready(3, 1.0, unready=1)) == 4
    # 8 at 1.0 and 1 that starts: 0.889 / 0.8 = 1.11, times 9 is 10.
    assert RULES.desired(ready(8, 1.0, unready=1)) == 10
    # 2 at 0.9 ask for 3; with 2 that start the ratio turns around, and nothing is done.
    assert RULES.desired(ready(2, 0.9, unready=2)) == 4


def test_pods_that_are_not_ready_do_not_count_when_it_is_about_shrinking() -> None:
    assert RULES.desired(ready(4, 0.4, unready=2)) == 2


def test_growing_never_means_fewer_than_there_are() -> None:
    assert RULES.desired(ready(4, 1.0, current=9)) == 9


def test_without_a_ready_pod_nothing_is_known() -> None:
    assert RULES.desired(Pods(ready=[], unready=3, current=3)) == 3
    seen = view(APP, on(1), {"map": 4.0}, states={"host-0": HostState.STARTING})
    decision, _ = RULES.decide(seen, RULES.start())
    assert decision.planned.hosts == seen.requested.hosts
    assert decision.reason.startswith("no host has run for a whole interval yet: keep 1 host")


# --- time -----------------------------------------------------------------------------------------------------------


def test_growth_is_by_four_hosts_or_to_the_double_whichever_is_more() -> None:
    hot = HorizontalPodAutoscaler(target_utilisation=0.1)
    wide = replace(POOL, max_hosts=40)
    decisions = story(hot, 2, [1.0, 1.0, 1.0], wide)
    assert sizes(decisions) == [6, 12, 24]  # 2 + 4, 2 * 6, 2 * 12, where 20, 60 and 120 are asked for
    (veto,) = decisions[0].why_not
    assert str(veto) == "hpa: not 2 -> 20 hosts, because growth is limited to 100 % or 4 hosts within 15 s"


def test_what_was_added_within_the_period_counts_against_it() -> None:
    """Two decisions 20 s apart: they share a period of 21 s, and do not share one of 20 s."""
    wide = replace(POOL, max_hosts=40)
    hot = HorizontalPodAutoscaler(target_utilisation=0.1, scale_up_period_s=21.0)
    assert sizes(story(hot, 2, [1.0, 1.0, 1.0], wide)) == [6, 6, 12]
    assert sizes(story(replace(hot, scale_up_period_s=20.0), 2, [1.0, 1.0, 1.0], wide)) == [6, 12, 24]


def test_hosts_fall_to_the_most_that_was_recommended_in_the_last_300_s() -> None:
    """4 hosts at 0.4 ask for 2, from the first interval on: after 300 s, 15 intervals, they get their way."""
    decisions = story(RULES, 4, [0.4] * 15)
    assert sizes(decisions) == [4] * 14 + [2]
    assert decisions[-1].reason == "mean of 4 hosts at 0.40, target 0.80: 4 -> 2 hosts"
    (veto,) = decisions[-2].why_not
    assert str(veto) == "hpa: not 4 -> 2 hosts, because up to 4 were recommended within 300 s"


def test_a_higher_recommendation_holds_a_scale_down_back_for_a_window_of_its_own() -> None:
    decisions = story(RULES, 4, [0.4] * 10 + [0.6] + [0.4] * 15)
    assert sizes(decisions)[:25] == [4] * 14 + [3] * 11  # 0.6 of 4 hosts asked for 3, at 220 s
    # At 520 s that is forgotten, and 0.4 of 3 hosts ask for 2.
    assert sizes(decisions)[25] == 2


def test_a_window_of_nothing_shrinks_at_once() -> None:
    assert sizes(story(HorizontalPodAutoscaler(scale_down_window_s=0.0), 4, [0.4])) == [2]


# --- hosts that come and go -----------------------------------------------------------------------------------------


def test_a_host_is_ready_when_it_has_run_for_a_whole_interval() -> None:
    """host-2 began to run in this interval: its 0.1 says nothing."""
    placed = placed_on(map=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2))
    seen = view(APP, placed, {"map": [1.0] * 8 + [0.2, 0.2]})
    memory = HpaMemory(hosts=3, running=frozenset({"host-0", "host-1"}))
    decision, memory = RULES.decide(seen, memory)
    assert len(decision.planned.hosts) == 3  # 2 at 1.0 and an idle one: 0.83 of the target, which turns around
    decision, _ = RULES.decide(seen, memory)
    assert decision.reason.startswith("mean of 3 hosts at 0.70")


def test_a_host_that_is_being_released_does_not_count() -> None:
    seen = view(APP, on(3), {"map": 12.0}, states={"host-2": HostState.RELEASING})
    decision, _ = RULES.decide(seen, RULES.start())
    assert decision.reason.startswith("mean of 2 hosts at 1.00, target 0.80: keep 3 hosts")


def test_a_lost_host_is_replaced_at_once() -> None:
    seen = view(APP, on(3), {"map": 9.6})
    _, memory = RULES.decide(seen, RULES.start())
    rest = view(APP, on(2), {"map": 6.4}, index=1)
    decision, _ = RULES.decide(rest, memory)
    assert decision.planned.hosts == ("host-0", "host-1", "host-2")
    assert decision.reason == "mean of 2 hosts at 0.80, target 0.80: 2 -> 3 hosts"


def test_the_pool_limits_both_ways_and_it_is_said() -> None:
    decision = story(RULES, 3, [1.0], replace(POOL, max_hosts=3))[0]
    assert decision.planned.hosts == ("host-0", "host-1", "host-2")
    assert str(decision.why_not[0]) == "hpa: not 3 -> 4 hosts, because the pool has between 1 and 3"
    idle = story(HorizontalPodAutoscaler(scale_down_window_s=0.0), 3, [0.0], replace(POOL, min_hosts=2))[0]
    assert len(idle.planned.hosts) == 2


# --- operators ------------------------------------------------------------------------------------------------------


def test_operators_share_the_cores_of_new_hosts_by_demand() -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=16))
    placed = placed_on(parse=(0,), count=allocation(app, replicas={"count": 3}).operators["count"])
    decision = next(play(RULES, app, placed, [{"parse": 1.0, "count": 3.0}]))
    assert len(decision.planned.hosts) == 2
    assert {n: o.replicas for n, o in decision.planned.operators.items()} == {"parse": 4, "count": 12}
    assert decision.expected.utilisation == pytest.approx(0.5, abs=0.1)


def test_cores_are_dealt_anew_when_an_operator_is_short_and_hosts_look_idle() -> None:
    app = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=16))
    decision = next(play(RULES, app, allocation(app), [{"parse": 0.5, "count": 1.5}]))
    assert {n: o.replicas for n, o in decision.planned.operators.items()} == {"parse": 2, "count": 6}
    assert decision.reason == "mean of 1 host at 0.50, target 0.80: keep 1 host, deal their cores anew"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target_utilisation": 0.0}, "hpa: target_utilisation must be above 0 and at most 1, not 0.0"),
        ({"tolerance": -0.1}, "hpa: tolerance must be 0 or more, not -0.1"),
        ({"scale_up_hosts": 0}, "hpa: scale_up_hosts must be at least 1, not 0"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue) as mistake:
        HorizontalPodAutoscaler(**parameters)  # type: ignore[arg-type]
    assert str(mistake.value) == message
