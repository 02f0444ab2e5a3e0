"""PSPS's load balancing grouping: many rows at once, beside Algorithm 1 of the paper row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st
from numpy.typing import NDArray
from worlds import Run, observe, one_operator, phases, simulate, steady
from worlds import backend as world

from springtide.backends.simulator.engine import Engine
from springtide.backends.simulator.settings import BalancedBy, SimulatorSettings
from springtide.model.action import SetReplicas
from springtide.model.allocation import OperatorAllocation
from springtide.model.application import Grouping

INTERVAL_S = 60.0
SERVICE_S = 0.02


def algorithm_1(utilisation: list[float], events: int, et: float, td: float) -> list[int]:
    """Who gets each of `events` events, as printed (lines 1 to 12); a replica is full from U = 1 on."""
    u = list(utilisation)
    sent = [0] * len(u)
    turn = 0
    for _ in range(events):
        m = 0
        for j in range(len(u)):  # lines 2-6
            if u[j] < u[m]:
                m = j
        if u[m] >= 1:  # line 7
            m = turn % len(u)  # line 8
            turn += 1
        else:
            u[m] += et / td  # line 10
        sent[m] += 1  # line 12
    return sent


def interval_after(
    first_rate: float, before: int, second_rate: float, after: int, *, step_s: float = 1.0
) -> tuple[list[float], NDArray[np.float64]]:
    """Two intervals with another number of replicas in each: U at the start of the second, and who got its rows."""
    application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
    rows = phases((first_rate, INTERVAL_S), (second_rate, INTERVAL_S), step_s=step_s)
    backend = world(application, rows, replicas=before, step_s=step_s, interval_s=INTERVAL_S)
    more = [SetReplicas("work", ("host-0",) * after, before=before)] if after != before else []
    run = observe(backend, every_s=INTERVAL_S, script={INTERVAL_S: more})

    measured = run.observations[0].operators["work"].replica_utilisation.tolist()
    return [*measured, *([0.0] * after)][:after], run.last.operators["work"].shards.rows


@pytest.mark.parametrize("step_s", [0.5, 1.0, 5.0])
@pytest.mark.parametrize(
    ("first_rate", "before", "second_rate", "after"),
    [
        (60.0, 2, 60.0, 2),  # all equally loaded
        (60.0, 2, 30.0, 3),  # a new one, and fewer rows than it can take
        (60.0, 2, 100.0, 3),  # a new one, and rows for all
        (90.0, 2, 200.0, 5),  # beyond what Algorithm 1 can level out: in turn
        (140.0, 3, 20.0, 1),  # two fewer
        (400.0, 2, 120.0, 4),  # those that were there are full already
    ],
)
def test_the_rows_of_an_interval_go_where_algorithm_1_sends_them(
    first_rate: float, before: int, second_rate: float, after: int, step_s: float
) -> None:
    utilisation, received = interval_after(first_rate, before, second_rate, after, step_s=step_s)
    events = round(second_rate * INTERVAL_S)

    assert received.sum() == pytest.approx(events)
    expected = algorithm_1(utilisation, events, et=SERVICE_S, td=INTERVAL_S)
    assert received.tolist() == pytest.approx(expected, abs=2.0)


def test_utilisation_is_that_of_equation_5() -> None:
    run = simulate(
        one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S),
        steady(60, seconds=60),
        replicas=3,
        interval_s=INTERVAL_S,
    )
    seen = run.last.operators["work"]
    assert seen.replica_utilisation.tolist() == pytest.approx((seen.shards.rows * SERVICE_S / INTERVAL_S).tolist())
    assert seen.replica_utilisation.tolist() == pytest.approx([0.4] * 3)


def test_a_newly_activated_replica_gets_the_rows_first() -> None:
    utilisation, received = interval_after(70.0, 2, 20.0, 3)

    assert utilisation == pytest.approx([0.7, 0.7, 0.0])
    assert received.tolist() == pytest.approx([0.0, 0.0, 1200.0])


def test_a_replica_that_comes_back_is_new_again() -> None:
    application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
    backend = world(application, phases((80, 60), (40, 60), (10, 60)), replicas=2, interval_s=INTERVAL_S)
    one, two = ([SetReplicas("work", ("host-0",) * n, before=3 - n)] for n in (1, 2))
    run = observe(backend, every_s=INTERVAL_S, script={60.0: one, 120.0: two})

    assert run.at(60).operators["work"].replica_utilisation.tolist() == pytest.approx([0.8, 0.8])
    assert run.last.operators["work"].shards.rows.tolist() == pytest.approx([0.0, 600.0])


def test_rows_that_wait_stay_with_the_replica_they_were_sent_to() -> None:
    """An overloaded replica keeps its queue; what comes later goes to the new one."""
    application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
    backend = world(application, phases((80, 60), (20, 60)), replicas=1, interval_s=INTERVAL_S)
    run = observe(backend, every_s=INTERVAL_S, script={60.0: [SetReplicas("work", ("host-0", "host-0"), before=1)]})
    assert run.at(60).backlog_rows == pytest.approx(60 * 30)
    assert run.last.operators["work"].shards.backlog_rows.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert run.last.operators["work"].replica_utilisation.tolist() == pytest.approx([0.6, 0.4], abs=0.01)


def test_every_interval_begins_with_what_the_last_one_measured() -> None:
    """Two replicas become three, then five, then two: each time Algorithm 1 goes on from the utilisations of Eq. (5)."""
    rows = phases((45, 60), (80, 60), (145, 60), (60, 60), (60, 60))
    script = {60.0: _replicas(3, before=2), 120.0: _replicas(5, before=3), 180.0: _replicas(2, before=5)}
    application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
    run = simulate(application, rows, every_s=INTERVAL_S, interval_s=INTERVAL_S, replicas=2, script=script)

    before = np.zeros(2)
    for seen in run.of("work"):
        active = len(seen.shards.rows)
        utilisation = [*before.tolist(), *([0.0] * active)][:active]
        expected = algorithm_1(utilisation, round(seen.offered_rows), et=SERVICE_S, td=INTERVAL_S)
        assert seen.shards.rows.tolist() == pytest.approx(expected, abs=1.0)
        before = seen.replica_utilisation


def test_a_new_replica_gets_the_rows_until_it_is_as_busy_as_the_old_one() -> None:
    """The old one was half busy: of the next 2400 rows the new one takes 1500 to catch up, then they share."""
    utilisation, received = interval_after(25.0, 1, 40.0, 2)

    assert utilisation == pytest.approx([0.5, 0.0])
    assert received.tolist() == pytest.approx([450.0, 1950.0])


def test_rows_after_a_scale_out_do_not_queue_up_behind_the_backlog() -> None:
    """One replica falls 500 rows behind before a second is activated. With load-balanced grouping the old one is left
    alone with its backlog and done with it after 10 s; with shuffle grouping half of the new rows join it, for 18 s."""

    def scaled_out(grouping: Grouping) -> Run:
        application = one_operator(grouping=grouping, service_time_s=SERVICE_S)
        backend = world(application, phases((75, 20), (45, 60)), interval_s=20.0)
        return observe(backend, every_s=20.0, script={20.0: _replicas(2, before=1)})

    load_balanced, shuffled = scaled_out(Grouping.LOAD_BALANCED), scaled_out(Grouping.SHUFFLE)

    for run in (load_balanced, shuffled):
        assert run.at(20).operators["work"].backlog_rows == pytest.approx(500.0)
        assert run.processed() == pytest.approx(run.offered())  # both catch up in the end
    waited_s = [run.at(40).latency.mean_s * run.at(40).latency.rows for run in (load_balanced, shuffled)]
    behind_the_backlog_s = 22.5 * (500 / 27.5) * (10 / 2)  # rows that join it, by their mean wait: 10 s at first, 0 at last
    assert waited_s[1] - waited_s[0] == pytest.approx(behind_the_backlog_s, rel=0.02)
    assert load_balanced.at(40).latency.mean_s < 0.8 * shuffled.at(40).latency.mean_s
    assert load_balanced.latency.p90_s < shuffled.latency.p90_s


def _replicas(count: int, before: int) -> list[SetReplicas]:
    return [SetReplicas("work", ("host-0",) * count, before=before)]


# --- by what waits for a replica, not by what it has done ---------------------------------------------------------------


def test_by_what_waits_a_new_replica_is_given_as_much_as_waits_for_the_old_one_and_no_more() -> None:
    """One replica falls 500 rows behind before a second is activated. By what it has done it is full, and gets none of the
    next 900; by what waits, half of what follows the first 500."""

    def received(balanced_by: BalancedBy) -> list[float]:
        application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
        backend = world(application, phases((75, 20), (45, 20)), interval_s=20.0, balanced_by=balanced_by)
        rows: list[float] = (
            observe(backend, every_s=20.0, script={20.0: _replicas(2, before=1)}).last.operators["work"].shards.rows.tolist()
        )
        return rows

    assert received(BalancedBy.PROCESSED) == pytest.approx([0.0, 900.0])
    assert received(BalancedBy.PENDING) == pytest.approx([200.0, 700.0])


def test_what_a_replica_leaves_behind_waits_for_the_one_that_takes_it_over() -> None:
    """200 rows wait for each of three; when two are left, 400 wait for the first, and the second gets 200 to catch up."""
    application = one_operator(grouping=Grouping.LOAD_BALANCED, service_time_s=SERVICE_S)
    backend = world(application, phases((180, 20), (40, 20)), interval_s=20.0, replicas=3, balanced_by=BalancedBy.PENDING)
    run = observe(backend, every_s=20.0, script={20.0: _replicas(2, before=3)})

    assert run.at(20).operators["work"].shards.backlog_rows.tolist() == pytest.approx([200.0] * 3)
    assert run.last.operators["work"].shards.rows.tolist() == pytest.approx([300.0, 500.0])


def test_where_new_replicas_cannot_take_all_rows_only_what_waits_balances() -> None:
    """Three replicas fall behind, and a fourth comes. By what they have done it is flooded with all rows, far more than it
    can do, and the others run idle: that takes longer than dealing rows out evenly. By what waits all are done together."""

    def mean_latency_s(grouping: Grouping, balanced_by: BalancedBy) -> float:
        application = one_operator(grouping=grouping, service_time_s=SERVICE_S)
        # For as long as queues take to empty: rows that still wait at the end have no latency.
        backend = world(application, steady(190, seconds=240), interval_s=20.0, replicas=3, balanced_by=balanced_by)
        return observe(backend, every_s=20.0, script={20.0: _replicas(4, before=3)}).latency.mean_s

    by_pending, by_processed = (mean_latency_s(Grouping.LOAD_BALANCED, by) for by in (BalancedBy.PENDING, BalancedBy.PROCESSED))
    shuffled = mean_latency_s(Grouping.SHUFFLE, BalancedBy.PENDING)
    one_queue = mean_latency_s(Grouping.SHARED, BalancedBy.PENDING)
    assert by_pending < shuffled < by_processed
    assert by_pending == pytest.approx(one_queue, rel=0.02)


# --- any utilisations at all: the engine by itself, one interval of ten seconds ----------------------------------------


def shared_out(utilisation: Sequence[float], rows: NDArray[np.float64], et: float = 0.01) -> NDArray[np.float64]:
    """The rows that each replica is given when an interval begins with these utilisations."""
    replicas = len(utilisation)
    application = one_operator(service_time_s=et, grouping=Grouping.LOAD_BALANCED, max_replicas=8)
    engine = Engine(application, SimulatorSettings(interval_s=10.0), rows, seed=0, host_slots=1)
    engine.add_host(0, 1e9)
    engine.set_cores(0, 64)
    engine.route(0, OperatorAllocation(("host-0",) * replicas), {"host-0": 0})
    engine.begin_interval(0, np.array(utilisation))
    engine.run_to(rows.shape[1])
    received = np.array(engine.state.lanes["arrived"])
    assert received[replicas:].sum() == 0.0  # replicas that are switched off receive nothing
    return received[:replicas]


@budget(max_examples=60)
@given(
    utilisation=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
    rows_per_step=st.lists(st.integers(0, 300), min_size=10, max_size=10),
    et=st.sampled_from([0.005, 0.02, 0.1]),
)
def test_one_interval_is_shared_out_as_algorithm_1_does(utilisation: list[float], rows_per_step: list[int], et: float) -> None:
    events = sum(rows_per_step)
    received = shared_out(utilisation, np.array([rows_per_step], dtype=np.float64), et)

    assert received.sum() == pytest.approx(events)
    # Whole rows fill a replica up to one row beyond U = 1, and turns may end anywhere in a round.
    room = sum((1.0 - u) * 10.0 / et for u in utilisation)
    rounding = 1.0 if events <= room - len(utilisation) else 2.0
    assert received.tolist() == pytest.approx(algorithm_1(utilisation, events, et, td=10.0), abs=rounding + 1e-6)


def test_the_least_utilised_replica_is_filled_up_first() -> None:
    """A row adds 0.1 % to U: 100 rows lift the idle replica to 0.1, 200 more lift two of them to 0.2."""
    assert shared_out([0.0, 0.1, 0.9], steady(10, seconds=10)) == pytest.approx([100, 0, 0], abs=1e-9)
    assert shared_out([0.0, 0.1, 0.9], steady(30, seconds=10)) == pytest.approx([200, 100, 0], abs=1e-9)
    assert shared_out([0.0, 0.1, 0.2], steady(60, seconds=10)) == pytest.approx([300, 200, 100], abs=1e-9)


def test_where_all_are_full_rows_go_round_robin() -> None:
    assert shared_out([1.0, 1.0, 1.0, 1.0], steady(100, seconds=10)) == pytest.approx([250] * 4)
    # 100 rows fill the last one up; the 900 that follow are dealt out in turn.
    assert shared_out([1.0, 1.0, 0.9], steady(100, seconds=10)) == pytest.approx([300, 300, 400])


def test_how_finely_the_rows_come_does_not_matter() -> None:
    rows = np.array([[0, 400, 3, 0, 17, 80, 0, 250, 0, 50]], dtype=np.float64)
    utilisation = [0.7, 0.2, 0.45, 0.0]

    assert shared_out(utilisation, rows) == pytest.approx(shared_out(utilisation, steady(80, seconds=10)))
