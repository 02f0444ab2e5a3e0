"""How long rows take through batches, and how many hosts `tide` has for it, in simulated worlds of micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from springtide.applications.simulated.visits import visits
from springtide.backends.simulator.calibration import settings_for
from springtide.backends.simulator.settings import MicroBatch, ServiceModel, SimulatorSettings
from springtide.model.allocation import HostType, Pool
from springtide.model.application import SLO, Application, Edge, Grouping, Operator
from springtide.model.protocols import View
from springtide.plan.horizon.work import overdue_core_s
from springtide.plan.placement.counts import predict_skew, shard_weights
from springtide.plan.policies.tide import Tide
from springtide.plan.registry import make_policy
from springtide.plan.sizing.batches import BatchModel
from springtide.report.summary import Point, RunSummary
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

COSTS = MicroBatch(overhead_s=0.35, shard_overhead_s=0.02)
POOL = Pool(host=HostType(cores=1, start_s=9.0, release_s=5.0), max_hosts=4)


def calculator(*names: str, row_s: float = 0.010, shards: int = 8) -> Application:
    operators = tuple(Operator(name=name, service_time_s=row_s, shards=shards) for name in names or ("calculator",))
    edges = tuple(Edge(upstream=a.name, downstream=b.name) for a, b in pairwise(operators))
    return Application(name="calculator", operators=operators, edges=edges, slo=SLO(latency_s=5.0, percentile=0.9))


@dataclass(frozen=True)
class Watched:
    """A policy, and what it saw."""

    policy: Any
    views: list[View] = field(default_factory=list)
    name: ClassVar[str] = "watched"
    looks_ahead: ClassVar[bool] = True

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> Any:
        self.views.append(view)
        return self.policy.decide(view, memory)


@dataclass(frozen=True)
class Misled:
    """`tide`, made to believe that a row costs a tenth of what it does, or another multiple."""

    tide: Tide = field(default_factory=Tide)
    factor: float = 0.1

    def start(self) -> Any:
        return self.tide.start()

    def decide(self, view: View, memory: Any) -> Any:
        seen = view.observation.operators["calculator"]
        assert seen.costs is not None
        believed = replace(seen.costs.row_s, value=self.factor * seen.costs.row_s.value)
        if self.factor > 1:  # batches that are all alike do not tell, and the error says so
            believed = replace(believed, error=seen.costs.row_s.value / 2)
        service_time_s = self.factor * seen.service_time_s
        misled = replace(seen, costs=replace(seen.costs, row_s=believed), service_time_s=service_time_s)
        observation = replace(view.observation, operators={"calculator": misled})
        return self.tide.decide(replace(view, observation=observation), memory)


def simulated(
    rates: list[tuple[float, float]],
    *,
    interval_s: float = 3.0,
    application: Application | None = None,
    pool: Pool = POOL,
    policy: Any = None,
    micro_batch_trigger_s: float = 0.0,
    **settings: Any,
) -> tuple[RunSummary, list[Point], list[View]]:
    """Rates for some seconds each. Returns also what the policy saw, interval by interval."""
    watched = Watched(policy=policy or Tide())
    rows = np.concatenate([np.full(round(seconds / 0.1), rate * 0.1) for rate, seconds in rates])
    summary, points = Simulation(
        trace=Trace(name="told", step_s=0.1, counts=rows),
        application=application or calculator(),
        pool=pool,
        settings=SimulatorSettings(
            service=ServiceModel.MICRO_BATCH,
            micro_batch=replace(COSTS, trigger_s=micro_batch_trigger_s),
            step_s=0.1,
            interval_s=interval_s,
            **settings,
        ),
        policy=watched,
        policy_name="tide",
    ).run()
    return summary, points, watched.views


class TestModel:
    @pytest.mark.parametrize(("rate", "hosts"), [(20, 1), (40, 1), (55, 1), (100, 2), (150, 3), (200, 3), (250, 4)])
    def test_predicted_latency_is_what_comes_out(self, rate: float, hosts: int) -> None:
        """One replica on each host, as many shards on each as can be."""
        pool = Pool(host=POOL.host, min_hosts=hosts, max_hosts=hosts)
        _, _, views = simulated([(rate, 300.0)], interval_s=10.0, pool=pool, initial_hosts=hosts, initial_replicas=hosts)
        view = views[-1]
        model = BatchModel.of(view)
        assert model is not None
        predicted_s = float(model.latency_s(0.9, np.array([float(hosts)]))[0])
        assert predicted_s == pytest.approx(view.observation.latency.p90_s, rel=0.25)

    @pytest.mark.parametrize("rate", [1000.0, 2000.0, 4000.0])
    def test_operators_in_a_row_start_batches_as_often_as_they_can_and_share_slots(self, rate: float) -> None:
        """What a batch costs beside its rows is most of the work of four operators that share 20 cores."""
        watched = Watched(policy=make_policy("static", {"hosts": 5, "replicas": 8}))
        Simulation(
            trace=Trace(name="told", step_s=0.1, counts=np.full(2400, rate * 0.1)),
            application=visits(20.0),
            pool=Pool(host=HostType(cores=4)),
            settings=replace(settings_for(ServiceModel.MICRO_BATCH), step_s=0.1, interval_s=30.0, initial_hosts=5),
            policy=watched,
            policy_name="static",
        ).run()
        view = watched.views[-1]
        model = BatchModel.of(view)
        assert model is not None
        predicted_s = float(model.latency_s(0.9, np.array([20.0]))[0])
        assert predicted_s == pytest.approx(view.observation.latency.p90_s, rel=0.3)

    @pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
    def test_at_its_capacity_the_objective_is_just_kept_and_more_slots_have_more(self, names: tuple[str, ...]) -> None:
        _, _, views = simulated([(20.0, 60.0)], application=calculator(*names, row_s=0.002))
        found = BatchModel.of(views[-1])
        assert found is not None
        model = replace(found, trigger_s=0.0)
        slots = np.arange(1.0, 9.0)
        capacity = model.capacity_cores(0.9, 5.0, slots)
        assert (np.diff(capacity) > -0.03).all(), "a slot more that gets no shard more is none"
        assert capacity[-1] > 4 * capacity[0]
        assert model.latency_s(0.9, slots, capacity / model.work_cores) == pytest.approx(np.full(8, 5.0), rel=0.01)
        assert (capacity < model.throughput_cores(slots)).all()

    def test_shards_are_weighed_by_the_longest_batch_that_the_objective_allows(self) -> None:
        """In the small batches of a low load all shards look alike, because opening them is most of the work."""
        _, _, views = simulated([(5.0, 60.0)])
        view = views[-1]
        seen = view.observation.operators["calculator"]
        rows = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        skewed = replace(seen, shards=replace(seen.shards, rows=rows, busy_s=0.02 * rows.size + 0.0001 * rows))
        view = replace(view, observation=replace(view.observation, operators={"calculator": skewed}))

        weights = shard_weights(view, view.application.operators[0], view.requested.operators["calculator"])

        assert weights.sum() == pytest.approx(1.0)
        assert weights[0] / weights[1] > 3.0

    def test_an_objective_that_no_batch_can_keep_has_no_capacity(self) -> None:
        _, _, views = simulated([(20.0, 60.0)])
        model = BatchModel.of(views[-1])
        assert model is not None
        assert model.capacity_cores(0.9, 0.1, np.array([1.0, 4.0])).tolist() == [0.0, 0.0]

    @pytest.mark.parametrize(
        ("shards", "slots", "skew"), [(8, 1, 1.0), (8, 3, 1.125), (8, 5, 1.25), (8, 16, 2.0), (1000, 7, 1.0)]
    )
    def test_shards_that_do_not_divide_evenly_make_a_slot_busier(self, shards: int, slots: int, skew: float) -> None:
        assert predict_skew(np.full(shards, 1 / shards), slots) == pytest.approx(skew)


class TestStories:
    @pytest.mark.parametrize("interval_s", [3.0, 10.0, 30.0])
    def test_a_burst_is_met_and_forgotten(self, interval_s: float) -> None:
        summary, points, _ = simulated([(40, 600), (180, 600), (40, 900)], interval_s=interval_s)
        assert summary.mean_hosts <= 2.2
        assert summary.slo_violation_share <= 0.10
        assert points[-1].hosts == 1

    @pytest.mark.parametrize(("rate", "hosts"), [(40, 1), (110, 2), (180, 3)])
    def test_a_constant_load_has_a_constant_number_of_hosts(self, rate: float, hosts: int) -> None:
        summary, points, _ = simulated([(rate, 1200)], initial_hosts=hosts)
        assert {p.hosts for p in points} <= {hosts, hosts + 1}
        assert len({p.hosts for p in points[len(points) // 2 :]}) == 1
        assert summary.slo_kept

    def test_hosts_are_even_by_the_time_that_their_shards_take(self) -> None:
        _, _, views = simulated([(180, 300)], initial_hosts=3)
        busy = [host.busy_share for host in views[-1].observation.running_hosts]
        assert max(busy) < 1.25 * np.mean(busy)

    def test_an_objective_that_is_missed_for_reasons_unknown_leads_to_action(self) -> None:
        summary, points, _ = simulated([(150, 900)], policy=Misled())
        assert points[-1].hosts >= 2
        assert summary.latency.p50_s < 5.0

    def test_a_past_miss_does_not_keep_hosts_for_the_load_that_came_after_it(self) -> None:
        """Rows that leave late after a burst came during it: they say nothing of what the load after it needs."""
        _, points, _ = simulated([(40, 60), (300, 70), (40, 150)])
        assert max(p.hosts for p in points) == 4
        assert points[-1].hosts == 1

    def test_an_objective_kept_with_a_wide_margin_leads_to_a_trial_with_fewer_hosts(self) -> None:
        """Rows that are believed to be dearer than they are would keep a host for ever."""
        _, points, views = simulated([(40, 600)], policy=Misled(factor=2.0), initial_hosts=2)
        assert len({p.hosts for p in points[len(points) // 2 :]} & {1}) == 1
        kept = [view.observation.latency.slo_s <= 5.0 for view in views[100:]]
        assert np.mean(kept) > 0.9

    def test_a_trial_that_keeps_the_objective_does_not_end(self) -> None:
        _, points, _ = simulated([(40, 900)], policy=Misled(factor=2.0), initial_hosts=2)
        alone = next(i for i, p in enumerate(points) if p.hosts == 1)
        assert alone < 60
        assert {p.hosts for p in points[alone:]} == {1}

    @pytest.mark.parametrize(
        "rates",
        [
            [(40, 120), (0, 300), (40, 120)],
            [(1 / 60, 900)],
            [(0, 120), (100, 60), (0, 60)],
        ],
        ids=["silent for minutes", "a row a minute", "nothing at first"],
    )
    def test_little_or_nothing_needs_one_host(self, rates: list[tuple[float, float]]) -> None:
        summary, points, _ = simulated(rates)
        assert points[-1].hosts == 1
        assert summary.rows.backlog < 200

    def test_batches_longer_than_the_interval_are_no_reason_to_run_away(self) -> None:
        application = calculator(row_s=0.5)
        _, points, _ = simulated([(1.0, 900)], interval_s=1.0, application=application)
        assert points[-1].hosts <= 2
        assert sum(p.changed for p in points[len(points) // 2 :]) <= 4


def chain(parse_s: float, count_s: float) -> Application:
    operators = (
        Operator(name="parse", service_time_s=parse_s, grouping=Grouping.SHUFFLE, max_replicas=64),
        Operator(name="count", service_time_s=count_s, shards=32, max_replicas=64),
    )
    edges = (Edge(upstream="parse", downstream="count"),)
    return Application(name="chain", operators=operators, edges=edges, slo=SLO(latency_s=15.0, percentile=0.9))


def watched(policy: Any, application: Application, pool: Pool, rows_per_s: float, minutes: int = 10) -> tuple[RunSummary, View]:
    seen = Watched(policy)
    costs = MicroBatch(overhead_s=0.25, stage_overhead_s=0.0, task_overhead_s=0.15, shard_overhead_s=0.02)
    run = Simulation(
        trace=Trace(name="constant", step_s=1.0, counts=np.full(60 * minutes, rows_per_s)),
        application=application,
        pool=pool,
        settings=SimulatorSettings(service=ServiceModel.MICRO_BATCH, micro_batch=costs, interval_s=10.0, initial_hosts=4),
        policy=seen,
        policy_name="watched",
    )
    return run.run()[0], seen.views[-1]


def test_an_operator_has_tasks_for_its_part_of_the_slots_and_no_more() -> None:
    pool = Pool(host=HostType(cores=4, start_s=30.0), min_hosts=4, max_hosts=4)
    _, view = watched(Tide(), chain(parse_s=0.0005, count_s=0.008), pool, rows_per_s=800.0)
    replicas = {name: placed.replicas for name, placed in view.requested.operators.items()}
    assert replicas["parse"] < 6
    assert replicas["count"] == 16


def test_what_a_chain_with_unequal_operators_takes_is_predicted() -> None:
    pool = Pool(host=HostType(cores=4, start_s=30.0), min_hosts=4, max_hosts=4)
    _, view = watched(Tide(), chain(parse_s=0.0005, count_s=0.008), pool, rows_per_s=800.0)
    model = BatchModel.of(view)
    assert model is not None
    predicted_s = float(model.latency_s(0.9, np.array([16.0]))[0])
    assert predicted_s == pytest.approx(view.observation.latency.slo_s, rel=0.25)


def test_what_hosts_can_do_does_not_depend_on_whether_rows_come_now() -> None:
    pool = Pool(host=HostType(cores=4, start_s=30.0), max_hosts=8)
    _, view = watched(Tide(), chain(parse_s=0.002, count_s=0.002), pool, rows_per_s=800.0)
    silent = replace(view, demand_rows_per_s=dict.fromkeys(view.demand_rows_per_s, 0.0))
    busy_model, silent_model = BatchModel.of(view), BatchModel.of(silent)
    assert busy_model is not None
    assert silent_model is not None
    slots = np.array([4.0, 16.0])
    known = busy_model.capacity_cores(0.9, 15.0, slots)
    assert silent_model.capacity_cores(0.9, 15.0, slots) == pytest.approx(known, rel=0.3)
    assert (known < slots).all()


def test_the_oracle_keeps_the_objective_in_batches_with_fewer_hosts_than_there_may_be() -> None:
    pool = Pool(host=HostType(cores=4, start_s=30.0), max_hosts=8)
    summary, _ = watched(make_policy("oracle", {}), chain(parse_s=0.002, count_s=0.004), pool, rows_per_s=800.0, minutes=30)
    assert summary.slo_kept
    assert 1.5 < summary.mean_hosts < 5


def test_no_host_is_released_while_rows_wait_for_longer_than_the_objective_allows() -> None:
    pool = Pool(host=HostType(cores=4, start_s=30.0), max_hosts=8)
    seen = Watched(Tide())
    burst = np.concatenate([np.full(600, 300.0), np.full(180, 2500.0), np.full(600, 300.0)])
    Simulation(
        trace=Trace(name="burst", step_s=1.0, counts=burst),
        application=chain(parse_s=0.002, count_s=0.004),
        pool=pool,
        settings=SimulatorSettings(service=ServiceModel.MICRO_BATCH, micro_batch=COSTS, interval_s=10.0, initial_hosts=2),
        policy=seen,
        policy_name="watched",
    ).run()
    waits = [view for view in seen.views if overdue_core_s(view, 1.0) > 0]
    assert waits
    later = {view.observation.index + 1: len(view.requested.hosts) for view in seen.views}
    for view in waits:
        assert later.get(view.observation.index + 2, 8) >= len(view.requested.hosts)
