"""BGElasor's three policies (Mu et al. 2019): SREA, SPEA and CBA, by what they look at and what they cost."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from observations import placed_on, replicas, view

from factories import application, operator
from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.loop import ControlLoop
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Application, Grouping
from springtide.model.decision import Decision
from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import AnyPolicy, Forecast, View
from springtide.plan.cost.model import Prices, total_cost
from springtide.plan.policies.cost_balance import CostBalance
from springtide.plan.policies.proactive import Proactive
from springtide.plan.policies.reactive import Reactive
from springtide.plan.prediction.rates import RecentRates
from springtide.report.summary import RunTotals

SREA, SPEA, CBA = Reactive(), Proactive(), CostBalance()
APP = application(operator("parse", grouping=Grouping.SHUFFLE, max_replicas=9))
ROWS_PER_S = 300.0  # what the source of a view offers


def told(*cores: float, now: float = 1.0) -> Forecast:
    """That the next intervals bring so many cores of work, where the present one brings `now`."""
    rates = np.array(cores) * ROWS_PER_S / now
    return Forecast(interval_s=20.0, model="told", mean={"source": rates}, upper={"source": rates})


def seen(now: float, *ahead: float, placed: int = 1, waiting: float = 0.0) -> View:
    """An interval that brought `now` cores of work, with a forecast if the next ones are given, and rows that wait."""
    forecast = told(*ahead, now=now) if ahead else None
    found = view(APP, placed_on(parse=replicas(*[0] * placed)), {"parse": now}, forecast=forecast)
    parse = replace(found.observation.operators["parse"], backlog_rows=waiting)
    return replace(found, observation=replace(found.observation, operators={"parse": parse}))


def decide(policy: AnyPolicy, seen: View) -> Decision:
    return policy.decide(seen, policy.start())[0]


def count(policy: AnyPolicy, seen: View) -> int:
    return decide(policy, seen).planned.operators["parse"].replicas


# --- what they look at ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("placed", "now", "ahead", "srea", "spea", "cba"),
    [
        (3, 2.5, (2.5, 2.5, 2.5), 3, 3, 3),
        (3, 2.5, (4.5, 4.5, 4.5), 3, 5, 5),  # more next: only SREA is late
        (3, 2.5, (2.5, 4.5, 4.5), 3, 3, 3),  # more later: not yet
        (5, 4.5, (2.5, 2.5, 2.5), 5, 5, 5),  # less next: stopped once it has fallen
        (5, 2.5, (2.5, 2.5, 2.5), 3, 3, 3),
        (5, 2.5, (2.5, 4.5, 2.5), 3, 3, 5),  # what SPEA stops and starts again at once, CBA keeps
    ],
)
def test_the_same_input_by_all_three(placed: int, now: float, ahead: tuple[float, ...], srea: int, spea: int, cba: int) -> None:
    moment = seen(now, *ahead, placed=placed)
    assert (count(SREA, moment), count(SPEA, moment), count(CBA, moment)) == (srea, spea, cba)


def test_what_cba_keeps_is_said_with_its_price() -> None:
    """Two instances are stopped now and started in the next interval: 20,200 with both re-routings, and 16,000 to keep them."""
    decision = decide(CBA, seen(2.5, 2.5, 4.5, 4.5, placed=5))
    assert decision.planned.operators["parse"].replicas == 5
    (veto,) = decision.why_not
    assert veto.what == "parse 5 -> 3 replicas"
    kept, stopped = total_cost((5,) * 7, Prices()), total_cost((5, 3, 5, 5, 5, 5, 5), Prices())
    assert stopped - kept == 4200
    assert veto.why == f"with what follows from it, 6 intervals would cost {stopped:.0f} and not {kept:.0f}"


def test_a_pause_of_two_intervals_is_worth_a_restart() -> None:
    assert count(CBA, seen(2.5, 2.5, 2.5, 4.5, placed=5)) == 3


def test_at_other_prices_cba_decides_otherwise() -> None:
    pause = seen(2.5, 2.5, 2.5, 4.5, placed=5)
    assert count(CostBalance(startup_price=12_000.0), pause) == 5
    short = seen(2.5, 2.5, 4.5, placed=5)
    assert count(CostBalance(instance_price=20_000.0), short) == 3


def test_dear_reroutings_make_starts_happen_together() -> None:
    rising = seen(1.5, 2.5, 3.5, 3.5, placed=2)
    assert count(CBA, rising) == 3
    assert count(CostBalance(reroute_price=9000.0), rising) == 4


def test_only_the_horizon_counts() -> None:
    moment = seen(2.5, 2.5, 4.5, 4.5, placed=5)
    assert count(CostBalance(horizon=1), moment) == 3
    assert count(CostBalance(horizon=2), moment) == 5


@pytest.mark.parametrize("policy", [SREA, SPEA, CBA], ids=lambda p: p.name)
def test_rows_that_wait_are_counted_with_the_input(policy: AnyPolicy) -> None:
    """24,000 rows of 1 ms are 1.2 cores for an interval of 20 s."""
    assert count(policy, seen(2.5, waiting=24_000.0)) == 4
    assert count(policy, seen(2.5, 2.5, waiting=24_000.0)) == 4


@pytest.mark.parametrize("policy", [SREA, SPEA, CBA], ids=lambda p: p.name)
def test_rows_that_wait_are_counted_where_less_is_foreseen_too(policy: AnyPolicy) -> None:
    """Nobody who looks ahead has fewer replicas for what waits than SREA has, which does not."""
    assert count(policy, seen(4.5, 2.5, 2.5, placed=5, waiting=24_000.0)) == 6


@pytest.mark.parametrize("policy", [SREA, SPEA, CBA], ids=lambda p: p.name)
def test_capability_may_equal_the_input_and_ends_at_the_limit(policy: AnyPolicy) -> None:
    assert count(policy, seen(3.0)) == 3
    decision = decide(policy, seen(12.0))
    assert decision.planned.operators["parse"].replicas == 9
    assert [(v.who, v.why) for v in decision.why_not] == [(policy.name, "parse may have no more than 9")]


@pytest.mark.parametrize("policy", [SREA, SPEA, CBA], ids=lambda p: p.name)
def test_no_input_is_one_replica(policy: AnyPolicy) -> None:
    assert count(policy, seen(0.0, placed=4)) == 1


@pytest.mark.parametrize("policy", [SPEA, CBA], ids=lambda p: p.name)
def test_without_a_forecast_the_line_through_the_last_rates_stands_in(policy: AnyPolicy) -> None:
    rising = RecentRates({"source": (ROWS_PER_S * 0.6, ROWS_PER_S * 0.8)})
    decision, memory = policy.decide(seen(2.5, placed=3), rising)
    assert decision.planned.operators["parse"].replicas == 3  # 2.5 x 1.2 next
    steeper = RecentRates({"source": (ROWS_PER_S * 0.4, ROWS_PER_S * 0.7)})
    assert policy.decide(seen(2.5, placed=3), steeper)[0].planned.operators["parse"].replicas == 4  # 2.5 x 1.3 next
    assert memory.of == {"source": (ROWS_PER_S * 0.6, ROWS_PER_S * 0.8, ROWS_PER_S)}


# --- what they cost ---------------------------------------------------------------------------------------------------

# Three kinds of load as in Figure 3, in cores of work: stable, periodic and fluctuating.
LOADS: Mapping[str, FloatArray] = {
    "stable": 3.4 + 0.3 * np.sin(np.arange(60)),
    "periodic": 4.0 + 3.0 * np.sin(np.arange(60) * 2 * np.pi / 20),
    "fluctuating": np.array([3.0 + 2.5 * ((i * 7919) % 13) / 12 for i in range(60)]),
}


def numbers(policy: AnyPolicy, load: FloatArray) -> list[int]:
    """The replicas in each interval, if six intervals are always known ahead and each plan is carried out at once."""
    memory, found, placed = policy.start(), [1], 1
    for i in range(len(load) - 6):
        decision, memory = policy.decide(seen(load[i], *load[i + 1 : i + 7], placed=placed), memory)
        placed = decision.planned.operators["parse"].replicas
        found.append(placed)
    return found


@pytest.mark.parametrize("load", LOADS)
def test_knowing_what_comes_spea_and_cba_always_have_enough_and_srea_does_not(load: str) -> None:
    coming = LOADS[load][1 : len(LOADS[load]) - 5]
    short = {p.name: sum(n < c for n, c in zip(numbers(p, LOADS[load])[1:], coming, strict=True)) for p in (SREA, SPEA, CBA)}
    assert short["proactive"] == short["cost-balance"] == 0
    assert short["reactive"] > 0 or load == "stable"


@pytest.mark.parametrize("load", LOADS)
def test_cba_costs_no_more_than_spea_and_changes_no_more_often(load: str) -> None:
    """Figures 4 (b), 4 (c) and 5 (a)."""
    spea, cba = numbers(SPEA, LOADS[load]), numbers(CBA, LOADS[load])
    assert total_cost(cba, Prices()) <= total_cost(spea, Prices())
    assert changes(cba) <= changes(spea)


def test_cba_costs_less_where_the_input_fluctuates() -> None:
    spea, cba = numbers(SPEA, LOADS["fluctuating"]), numbers(CBA, LOADS["fluctuating"])
    assert total_cost(cba, Prices()) < total_cost(spea, Prices())
    assert changes(cba) < changes(spea)


def changes(found: list[int]) -> int:
    return sum(a != b for a, b in itertools.pairwise(found))


# --- in the simulator -------------------------------------------------------------------------------------------------


def run(app: Application, policy: AnyPolicy, rows: FloatArray, *, foresight: bool) -> tuple[RunTotals, SimulatorBackend]:
    pool = Pool(host=HostType(cores=4, start_s=10.0), max_hosts=6)
    backend = SimulatorBackend(app, pool, SimulatorSettings(), rows[np.newaxis])

    def forecast(observed: Observation) -> Forecast | None:
        ahead = rows[int(observed.end_s) :][: 6 * 30]
        if not foresight or len(ahead) < 6 * 30:
            return None
        rates = ahead.reshape(6, 30).mean(axis=1)
        return Forecast(interval_s=30.0, model="told", mean={"source": rates}, upper={"source": rates})

    totals = RunTotals()
    loop = ControlLoop(application=app, pool=pool, policy=policy, interval_s=30.0, forecast=forecast)
    loop.run(backend, totals, backend.duration_s)
    return totals, backend


@pytest.mark.parametrize("policy", [SPEA, CBA], ids=lambda p: p.name)
def test_instances_are_there_before_the_input_rises(policy: AnyPolicy) -> None:
    """Figure 5 (b): SREA makes rows wait every time the input rises beyond what there is, the others do not."""
    app = application(operator("parse", grouping=Grouping.SHARED, service_time_s=0.005))
    wave = 400.0 - 300.0 * np.cos(np.arange(3000) * 2 * np.pi / 1200)
    late, early = run(app, SREA, wave, foresight=True)[1], run(app, policy, wave, foresight=True)[1]
    assert early.latency_of_run().p99_s < 0.5 * late.latency_of_run().p99_s


@pytest.mark.parametrize("policy", [SREA, SPEA, CBA], ids=lambda p: p.name)
def test_a_burst_that_nobody_foresaw_is_worked_off(policy: AnyPolicy) -> None:
    app = application(operator("parse", service_time_s=0.005, shards=64))
    burst = np.concatenate([np.full(90, 100.0), np.full(90, 3000.0), np.full(600, 100.0)])
    totals, _ = run(app, policy, burst, foresight=False)
    assert max(p.backlog_rows for p in totals.points) > 10_000
    assert totals.points[-1].backlog_rows == pytest.approx(0, abs=1)
    assert (totals.points[-1].replicas, totals.points[-1].hosts) == (1, 1)
