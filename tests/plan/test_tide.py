"""Our own policy, in situations where it is clear what it should do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from observations import INTERVAL_S, placed_on, shards, view

from factories import application, latency, operator
from springtide.backends.simulator.settings import Activation, Failure, SimulatorSettings
from springtide.errors import InvalidValue
from springtide.model.allocation import Allocation, HostType, Pool
from springtide.model.application import SLO, Application, Grouping, KeyDistribution
from springtide.model.decision import Decision
from springtide.model.protocols import Forecast, View
from springtide.plan.policies.tide import Tide
from springtide.plan.tide.learning import Stops, TideMemory
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

APP = application(operator("parse", grouping=Grouping.SHUFFLE), operator("count", shards=32), slo=SLO(latency_s=5.0))
POOL = Pool(host=HostType(cores=4, start_s=30.0), min_hosts=1, max_hosts=10)


def on(hosts: int, app: Application = APP) -> Allocation:
    every = list(range(hosts))
    return placed_on(parse=tuple(every * 2), count=shards(*[s % hosts for s in range(32)]))


def foreseen(seen: View, factors: list[float], spread: float = 1.1) -> View:
    rates = {s: rows / INTERVAL_S * np.array(factors) for s, rows in seen.observation.source_rows.items()}
    upper = {s: spread * values for s, values in rates.items()}
    return replace(seen, forecast=Forecast(interval_s=INTERVAL_S, model="told", mean=rates, upper=upper))


def decided(seen: View, memory: TideMemory | None = None, policy: Tide | None = None) -> tuple[Decision, TideMemory]:
    policy = policy or Tide()
    return policy.decide(seen, memory or policy.start())


def waiting(seen: View, rows: float) -> View:
    """With rows that wait for `count`."""
    slow = replace(seen.observation.operators["count"], backlog_rows=rows)
    return replace(seen, observation=replace(seen.observation, operators={**seen.observation.operators, "count": slow}))


class TestSize:
    def test_no_more_hosts_than_the_work_needs(self) -> None:
        decision, _ = decided(foreseen(view(APP, on(6), {"parse": 2.0, "count": 3.0}, pool=POOL), [1.0] * 40))
        assert len(decision.planned.hosts) == 2
        assert "5.0 cores of work now" in decision.reason

    def test_growth_that_is_foreseen_is_met_before_it_comes(self) -> None:
        soon = [1.0, 1.0, 2.5] + [2.5] * 30
        decision, _ = decided(foreseen(view(APP, on(2), {"parse": 2.0, "count": 3.0}, pool=POOL), soon))
        assert len(decision.planned.hosts) >= 4

    def test_what_is_still_far_away_is_not_paid_for_yet(self) -> None:
        later = [1.0] * 20 + [2.5] * 20
        decision, _ = decided(foreseen(view(APP, on(2), {"parse": 2.0, "count": 3.0}, pool=POOL), later))
        assert len(decision.planned.hosts) == 2

    def test_a_short_dip_is_sat_through_and_a_long_one_is_not(self) -> None:
        def hosts(dip: int) -> int:
            rates = [0.4] * dip + [1.0] * (60 - dip)
            decision, _ = decided(foreseen(view(APP, on(4), {"parse": 5.0, "count": 8.0}, pool=POOL), rates, spread=1.02))
            return len(decision.planned.hosts)

        assert hosts(4) == 4
        assert hosts(50) == 2

    def test_a_change_promises_what_the_hosts_that_run_will_have_to_do(self) -> None:
        """5 cores of work on 8; a host takes as long to start as an interval lasts, and leaves at once."""
        work = {"parse": 2.0, "count": 3.0}
        released, _ = decided(foreseen(view(APP, on(6), work, pool=POOL), [1.0] * 40))
        added, _ = decided(foreseen(view(APP, on(2), work, pool=POOL), [1.0, 1.0, 2.5] + [2.5] * 30))
        assert (len(released.planned.hosts), len(added.planned.hosts) > 2) == (2, True)
        assert released.expected.utilisation == pytest.approx(5 / 8)
        assert added.expected.utilisation == pytest.approx(5 / 8)
        quick = replace(POOL, host=HostType(cores=4, start_s=0.0))
        helped, _ = decided(foreseen(view(APP, on(2), work, pool=quick), [2.0] * 40))
        assert helped.expected.utilisation == pytest.approx(10 / (4 * len(helped.planned.hosts)))
        swamped, _ = decided(waiting(foreseen(view(APP, on(2), work, pool=POOL), [1.0] * 40), 400_000.0))
        assert swamped.expected.utilisation == 1.0

    def test_a_backlog_is_worked_off_fast(self) -> None:
        calm = foreseen(view(APP, on(2), {"parse": 2.0, "count": 4.0}, pool=POOL), [1.0] * 40)
        assert len(decided(calm)[0].planned.hosts) == 2
        assert len(decided(waiting(calm, 400_000.0))[0].planned.hosts) > 4

    def test_an_unlikely_burst_is_worth_less_than_a_likely_one(self) -> None:
        def hosts(spread: float) -> int:
            seen = foreseen(view(APP, on(2), {"parse": 2.0, "count": 3.0}, pool=POOL), [1.0] * 40, spread)
            return len(decided(seen)[0].planned.hosts)

        assert hosts(1.1) < hosts(2.0) <= hosts(4.0)

    def test_a_thousand_hosts_are_a_choice_too(self) -> None:
        pool = Pool(host=POOL.host, max_hosts=1000)
        app = application(operator("parse", grouping=Grouping.SHUFFLE, max_replicas=9000), slo=SLO(latency_s=5.0))
        seen = foreseen(view(app, placed_on(parse=(0,) * 9), {"parse": 2000.0}, pool=pool), [1.0] * 40, 1.01)
        assert 500 < len(decided(seen)[0].planned.hosts) < 640

    def test_whoever_may_be_late_more_often_pays_for_fewer_hosts(self) -> None:
        def hosts(spend: float) -> int:
            seen = foreseen(view(APP, on(4), {"parse": 5.0, "count": 8.0}, pool=POOL), [1.0] * 40, spread=1.15)
            return len(decided(seen, policy=Tide(spend=spend))[0].planned.hosts)

        assert hosts(1.0) < hosts(0.1)

    @pytest.mark.parametrize("spend", [0.0, -0.1, 1.1])
    def test_no_more_than_the_objective_allows_can_be_spent(self, spend: float) -> None:
        with pytest.raises(InvalidValue, match="spend must be above 0 and at most 1"):
            Tide(spend=spend)

    def test_hosts_that_start_at_once_are_for_the_next_interval(self) -> None:
        at_once = Pool(host=HostType(cores=4, start_s=0.0), min_hosts=1, max_hosts=10)
        rates = [2.5] + [1.0] * 39
        decision, _ = decided(foreseen(view(APP, on(2), {"parse": 2.0, "count": 3.0}, pool=at_once), rates))
        assert len(decision.planned.hosts) >= 4

    def test_a_change_that_stops_the_application_must_be_worth_it(self) -> None:
        seen = foreseen(view(APP, on(3), {"parse": 2.0, "count": 3.0}, pool=POOL), [1.0] * 40)
        assert len(decided(seen)[0].planned.hosts) == 2
        stopping = replace(Tide().start(), stops=Stops(stopped_s=120.0, changes=2))
        assert len(decided(seen, stopping)[0].planned.hosts) == 3

    def test_a_replica_that_is_sent_too_much_is_relieved_before_it_was_busy_throughout(self) -> None:
        """Keys changed in the middle of the interval: shard 0 gets twice what a core does, and its replica was busy for 0.9."""
        placed = placed_on(parse=(0, 1), count=shards(*[s % 2 for s in range(32)]))
        loads = [0.8] + [0.4] * 3 + [0.0] * 28  # shards 0 and 2 on one replica: 1.2 cores
        seen = foreseen(view(APP, placed, {"parse": 0.4, "count": loads}, pool=POOL), [1.0] * 40)
        slow = replace(seen.observation.operators["count"], replica_utilisation=np.array([0.9, 0.8]))
        seen = replace(seen, observation=replace(seen.observation, operators={**seen.observation.operators, "count": slow}))
        assert "count held up while cores are idle" in decided(seen, policy=Tide(change_s=1e6))[0].reason


class TestTrust:
    def test_while_forecasts_are_wrong_the_present_is_the_least(self) -> None:
        """It says that nothing will come, and the same comes again and again."""
        seen = foreseen(view(APP, on(4), {"parse": 5.0, "count": 7.0}, pool=POOL), [0.1] * 40, spread=1.0)
        trusting, memory = decided(seen)
        assert len(trusting.planned.hosts) < 4
        doubting, memory = decided(seen, memory)
        assert memory.distrusts
        assert len(doubting.planned.hosts) == 4


class TestLimits:
    def test_hosts_that_let_no_more_rows_through_are_not_followed_by_more(self) -> None:
        def seen(index: int, hosts: int) -> View:
            load = {"parse": 4.0, "count": 3.9}
            told = waiting(foreseen(view(APP, on(hosts), load, pool=POOL, index=index), [1.0] * 40), 300_000.0)
            same = latency(6000.0, 90.0, APP.slo)  # as many rows leave as before, late
            return replace(told, observation=replace(told.observation, latency=same))

        first, memory = decided(seen(0, 2))
        grown = len(first.planned.hosts)
        assert grown > 2
        for index in range(1, 6):
            _, memory = decided(seen(index, 3), memory)
        decision, memory = decided(seen(6, 3), memory)  # they have run for four intervals
        assert [w.why for w in decision.why_not if "no more rows through" in w.why]
        assert len(decision.planned.hosts) == 3

    def test_hosts_that_were_added_are_not_released_before_they_have_run(self) -> None:
        busy = waiting(foreseen(view(APP, on(2), {"parse": 4.0, "count": 3.9}, pool=POOL), [1.0] * 40), 300_000.0)
        first, memory = decided(busy)
        assert len(first.planned.hosts) > 4

        def calm(index: int) -> View:
            return foreseen(view(APP, on(5), {"parse": 1.0, "count": 1.0}, pool=POOL, index=index), [1.0] * 40)

        decision, memory = decided(calm(1), memory)
        assert len(decision.planned.hosts) == 5
        assert "have not shown yet" in decision.why_not[0].why
        for index in range(2, 7):
            decision, memory = decided(calm(index), memory)
        assert len(decision.planned.hosts) < 5

    def test_hosts_that_are_not_used_as_planned_are_judged_by_no_one(self) -> None:
        busy = waiting(foreseen(view(APP, on(2), {"parse": 4.0, "count": 3.9}, pool=POOL), [1.0] * 40), 300_000.0)
        _, memory = decided(busy)
        hosts = []
        for index in range(1, 30):
            calm = foreseen(view(APP, on(5), {"parse": 1.0, "count": 1.0}, pool=POOL, index=index), [1.0] * 40)
            decision, memory = decided(replace(calm, observation=replace(calm.observation, observed=on(2))), memory)
            hosts.append(len(decision.planned.hosts))
        assert hosts[0] == 5
        assert min(hosts) < 5

    def test_releases_have_a_budget_and_additions_have_none(self) -> None:
        policy = Tide(changes_per_hour=1)
        memory = replace(policy.start(), allowance=0.0)
        low = foreseen(view(APP, on(6), {"parse": 1.0, "count": 1.0}, pool=POOL), [1.0] * 40)
        decision, _ = decided(low, memory, policy)
        assert len(decision.planned.hosts) == 6
        assert "changes an hour are used up" in decision.why_not[0].why
        high = foreseen(view(APP, on(2), {"parse": 8.0, "count": 8.0}, pool=POOL), [1.0] * 40)
        assert len(decided(high, memory, policy)[0].planned.hosts) > 2


class TestLearning:
    def test_latency_that_is_near_the_limit_lowers_the_ceiling(self) -> None:
        def ceiling(seconds: float) -> float:
            memory = Tide().start()
            for index in range(40):
                seen = foreseen(view(APP, on(2), {"parse": 2.0, "count": 3.0}, pool=POOL, index=index), [1.0] * 40)
                seen = replace(seen, observation=replace(seen.observation, latency=latency(6000.0, seconds, APP.slo)))
                _, memory = decided(seen, memory)
            return memory.ceiling

        # 1 - 4 (1 - 0.625) / 5: the law says that 5 s are reached at 0.7 of the cores.
        assert ceiling(4.0) == pytest.approx(0.7, abs=0.02)
        assert ceiling(0.05) == pytest.approx(0.95, abs=0.01)

    def test_an_uneven_pool_carries_less(self) -> None:
        app = application(operator("parse", grouping=Grouping.SHUFFLE, max_replicas=2))
        memory = Tide().start()
        for index in range(60):
            uneven = view(app, placed_on(parse=(0, 1)), {"parse": [2.4, 1.2]}, pool=POOL, index=index)
            _, memory = decided(foreseen(uneven, [1.0] * 40), memory)
        assert memory.unevenness == pytest.approx(2.4 / 1.8, abs=0.02)

    def test_for_how_long_a_change_stops_the_application_is_learned(self) -> None:
        low = foreseen(view(APP, on(6), {"parse": 1.0, "count": 1.0}, pool=POOL), [1.0] * 40)
        first, memory = decided(low)
        after = foreseen(view(APP, first.planned, {"parse": 1.0, "count": 1.0}, pool=POOL, index=1), [1.0] * 40)
        stopped = replace(after, observation=replace(after.observation, downtime_s=12.0))
        assert decided(stopped, memory)[1].stops.each_s == 12.0


def simulated(
    counts: np.ndarray, app: Application = APP, policy: Tide | None = None, **settings: object
) -> tuple[RunSummary, list[Point]]:
    return Simulation(
        trace=Trace(name="told", step_s=1.0, counts=counts),
        application=app,
        pool=POOL,
        settings=SimulatorSettings(interval_s=30.0, **settings),  # type: ignore[arg-type]
        policy=policy or Tide(),
        policy_name="tide",
    ).run()


class TestStories:
    def test_a_spike_is_answered_and_forgotten(self) -> None:
        rows = np.concatenate([np.full(900, 500.0), np.full(600, 8000.0), np.full(7200, 500.0)])
        summary, points = simulated(rows)
        assert max(p.hosts for p in points) >= 4
        assert points[-1].hosts == 1
        assert summary.rows.backlog < 100

    def test_a_constant_load_comes_to_rest(self) -> None:
        _, points = simulated(np.full(7200, 5000.0))
        assert sum(p.changed for p in points[len(points) // 2 :]) <= 1
        assert points[-1].hosts in {3, 4}

    def test_a_day_costs_much_less_than_its_peak_and_keeps_the_objective(self) -> None:
        seconds = np.arange(4 * 3600.0)
        summary, _ = simulated(3000 - 2500 * np.cos(2 * np.pi * seconds / 7200))
        assert summary.slo_kept
        assert summary.core_hours < 0.75 * summary.peak_core_hours

    def test_what_may_be_late_is_used_to_save_hosts_and_no_more_than_that(self) -> None:
        chance = np.random.default_rng(3)
        rows = chance.poisson(3000 * np.repeat(chance.lognormal(0.0, 0.25, 480), 30)).astype(float)
        (careful, _), (spending, _) = (simulated(rows, policy=Tide(spend=spend)) for spend in (0.1, 1.0))
        assert spending.core_hours < 0.95 * careful.core_hours
        assert careful.slo_violation_share < spending.slo_violation_share
        assert spending.slo_kept

    def test_stops_are_rare_where_changes_stop_the_application(self) -> None:
        seconds = np.arange(4 * 3600.0)
        rows = 3000 - 2500 * np.cos(2 * np.pi * seconds / 7200)
        _, free = simulated(rows)
        _, stopping = simulated(rows, activation=Activation.RESTART, restart_s=300.0)
        assert sum(p.changed for p in stopping) < 0.7 * sum(p.changed for p in free)

    def test_a_lost_host_is_replaced(self) -> None:
        _, points = simulated(np.full(3600, 5000.0), failures=(Failure(at_s=1800.0),))
        assert points[-1].backlog_rows < 5000

    def test_skew_that_moves_is_followed(self) -> None:
        skewed = operator("count", shards=32, keys=KeyDistribution(keys=2000, zipf=0.9, shuffles_per_minute=0.1))
        app = application(operator("parse", grouping=Grouping.SHUFFLE), skewed, slo=SLO(latency_s=5.0))
        summary, _ = simulated(np.full(7200, 4000.0), app)
        assert summary.slo_kept


@pytest.mark.parametrize("wrong", [lambda _: 0.0, lambda rate: 20 * rate, lambda rate: rate / 3])
def test_plans_stay_sane_whatever_the_forecast_says(wrong: Callable[[float], float]) -> None:
    memory = Tide().start()
    hosts = 3
    for index in range(12):
        seen = view(APP, on(hosts), {"parse": 3.0, "count": 5.0}, pool=POOL, index=index)
        told = foreseen(seen, [wrong(1.0)] * 40, spread=1.0)
        decision, memory = decided(told, memory)
        decision.planned.check(APP)
        hosts = len(decision.planned.hosts)
    assert 2 <= hosts <= POOL.max_hosts
