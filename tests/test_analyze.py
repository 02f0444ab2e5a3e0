"""What rows will come to each operator, and whether decisions keep their promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factories import allocation, application, host_observation, latency, observation, operator
from springtide.analyze.demand import Flow, Flows, propagate
from springtide.analyze.outcome import compare
from springtide.model.application import Application, Edge, Source
from springtide.model.decision import Expectation
from springtide.model.observation import HostState, Latency, Observation


def edges(*streams: tuple[str, str, float]) -> tuple[Edge, ...]:
    return tuple(Edge(upstream=up, downstream=down, selectivity=part) for up, down, part in streams)


# PSPS, Figure 5; O1 is fed by the one source there is.
FIGURE_5 = application(
    operator("O4"),
    operator("O3"),
    operator("O2"),
    operator("O1"),  # given last: what is fed first is found from the edges
    edges=edges(("O1", "O2", 0.7), ("O1", "O3", 0.3), ("O2", "O4", 0.4), ("O3", "O4", 1.0)),
)


# --- demand -----------------------------------------------------------------------------------------------------------


def test_thetas_of_psps_figure_5() -> None:
    thetas = propagate(FIGURE_5, {"source": 1.0})

    assert thetas == pytest.approx({"O1": 1.0, "O2": 0.7, "O3": 0.3, "O4": 0.58})  # Eq. (2b)


def test_predicted_rows_of_psps_table_2() -> None:
    """100 events come; in the last interval O1 passed on 117 of the 140 it processed, and O2 90 of 120."""
    app = application("O1", "O2", "O3", edges=edges(("O1", "O2", 117 / 140), ("O2", "O3", 90 / 120)))  # Eq. (2c)

    predicted = propagate(app, {"source": 100.0})  # Eq. (2a)

    assert {name: round(rows) for name, rows in predicted.items()} == {"O1": 100, "O2": 84, "O3": 63}


def test_a_join_receives_what_all_its_inputs_send() -> None:
    """Orders and clicks, a quarter and three quarters of the trace, meet at `join`; clicks also feed a counter."""
    app = Application(
        name="shop",
        sources=(Source(name="orders", share=0.25), Source(name="clicks", share=0.75)),
        operators=(operator("parse"), operator("join"), operator("count")),
        edges=edges(("orders", "join", 1.0), ("clicks", "parse", 1.0), ("parse", "join", 0.5), ("parse", "count", 2.0)),
    )
    of_trace = 1000.0

    demand = propagate(app, {s.name: s.share * of_trace for s in app.sources})

    assert demand == pytest.approx({"parse": 750.0, "join": 250.0 + 375.0, "count": 1500.0})


def test_one_source_may_feed_several_operators_each_with_its_own_part() -> None:
    app = application("left", "right", edges=edges(("source", "left", 1.0), ("source", "right", 0.1)))

    assert propagate(app, {"source": 50.0}) == pytest.approx({"left": 50.0, "right": 5.0})


def test_a_source_that_is_silent_sends_nothing() -> None:
    app = Application(
        name="two",
        sources=(Source(name="loud"), Source(name="silent")),
        operators=(operator("a"), operator("b")),
        edges=edges(("loud", "a", 1.0), ("silent", "b", 1.0), ("a", "b", 0.0)),
    )

    assert propagate(app, {"loud": 10.0}) == {"a": 10.0, "b": 0.0}
    assert propagate(app, {"loud": 10.0, "silent": 3.0}) == {"a": 10.0, "b": 3.0}


def test_sources_are_not_operators() -> None:
    assert list(propagate(FIGURE_5, {"source": 7.0})) == [o.name for o in FIGURE_5.operators]


@given(rate=st.floats(0.0, 1e6), more=st.floats(0.0, 1e6))
def test_demand_is_linear_in_what_the_sources_offer(rate: float, more: float) -> None:
    together = propagate(FIGURE_5, {"source": rate + more})
    apart = [propagate(FIGURE_5, {"source": r}) for r in (rate, more)]

    assert together == pytest.approx({name: apart[0][name] + apart[1][name] for name in together}, rel=1e-9, abs=1e-9)


def test_what_was_measured_takes_the_place_of_what_was_said() -> None:
    """PSPS Table 2 again: nobody has said what O1 and O2 pass on."""
    app = application("O1", "O2", "O3")
    flows = Flows({"O1": Flow(140, 117), "O2": Flow(120, 90)})

    assert {name: round(rows) for name, rows in propagate(app, {"source": 100.0}, flows).items()} == {
        "O1": 100,
        "O2": 84,
        "O3": 63,
    }


def test_edges_of_one_operator_share_what_it_was_measured_to_send() -> None:
    app = application("a", "b", "c", edges=edges(("a", "b", 0.5), ("a", "c", 1.5)))

    assert propagate(app, {"source": 100.0}, Flows({"a": Flow(10, 10)})) == pytest.approx({"a": 100.0, "b": 25.0, "c": 75.0})


def test_without_a_measurement_what_was_said_holds() -> None:
    assert propagate(FIGURE_5, {"source": 7.0}, Flows()) == pytest.approx(propagate(FIGURE_5, {"source": 7.0}))


def test_bursts_of_rows_sent_on_are_told_from_a_steady_stream_by_nothing_but_time() -> None:
    """Every tenth interval sends on what ten took in: measured, that is one row for each one."""
    flow = Flow()
    for interval in range(1, 201):
        flow = flow.then(100.0, 1000.0 * (interval % 10 == 0))
        flows = Flows({"window": flow})

    assert flows.per_row("window", otherwise=7.0) == pytest.approx(1.0, rel=0.3)


def test_an_operator_that_stood_still_is_known_by_what_it_did_before() -> None:
    app = application("a", "b")
    busy = observation(application=app, rows=100.0)
    still = observation(application=app, rows=0.0)
    flows = Flows().then(busy)

    assert flows.then(still).of == flows.of


# --- outcomes ---------------------------------------------------------------------------------------------------------


def after(
    *, busy: float = 0.5, left_rows_per_s: float = 100.0, latency_s: float = 0.2, interval_s: float = 60.0, **fields: Any
) -> Observation:
    """The interval after a decision: how busy the busiest host was, how many rows left, and how late."""
    hosts = {"host-0": host_observation("host-0", utilisation=busy / 2), "host-1": host_observation("host-1", utilisation=busy)}
    values = {"hosts": hosts, "latency": latency(left_rows_per_s * interval_s, latency_s), **fields}
    return observation(index=5, interval_s=interval_s, allocation=allocation(hosts=2), **values)


def test_a_promise_kept_is_as_expected() -> None:
    promised = Expectation(utilisation=0.5, processed_rows_per_s=100.0, latency_s=0.2)
    outcome = compare(promised, after())

    assert outcome.verdict == "as expected"
    assert outcome.expected is promised
    assert outcome.measured == Expectation(utilisation=0.5, processed_rows_per_s=100.0, latency_s=0.2)
    assert outcome.interval == 5


def test_without_a_promise_there_is_nothing_to_break_but_the_figures_are_kept() -> None:
    outcome = compare(Expectation(), after(busy=0.99, left_rows_per_s=3.0, latency_s=60.0))

    assert outcome.verdict == "nothing was promised"
    assert outcome.measured == Expectation(utilisation=0.99, processed_rows_per_s=3.0, latency_s=60.0)


def test_every_miss_is_named_with_both_figures_and_their_unit() -> None:
    promised = Expectation(utilisation=0.4, processed_rows_per_s=200.0, latency_s=0.1)

    assert compare(promised, after(busy=0.912345, left_rows_per_s=100.0, latency_s=3.0)).verdict == (
        "busiest host 0.912 instead of 0.4; rows leaving 100 rows/s instead of 200 rows/s; latency 3 s instead of 0.1 s"
    )


@pytest.mark.parametrize(
    ("promised", "verdict"),
    [
        (Expectation(utilisation=0.2), "busiest host 0.5 instead of 0.2"),
        (Expectation(processed_rows_per_s=50.0), "rows leaving 100 rows/s instead of 50 rows/s"),
        (Expectation(latency_s=2.0), "latency 0.2 s instead of 2 s"),
        (Expectation(utilisation=0.5, latency_s=2.0), "latency 0.2 s instead of 2 s"),
        (Expectation(utilisation=0.5), "as expected"),
    ],
)
def test_only_what_was_promised_can_be_missed(promised: Expectation, verdict: str) -> None:
    assert compare(promised, after()).verdict == verdict


@pytest.mark.parametrize("factor", [0.76, 1.0, 1.24])
def test_a_quarter_more_or_less_is_close_enough(factor: float) -> None:
    promised = Expectation(processed_rows_per_s=100.0, latency_s=0.2)

    assert compare(promised, after(left_rows_per_s=100.0 * factor, latency_s=0.2 * factor)).verdict == "as expected"


@pytest.mark.parametrize("factor", [0.74, 1.26])
def test_beyond_a_quarter_it_is_a_miss_either_way(factor: float) -> None:
    promised = Expectation(processed_rows_per_s=100.0, latency_s=0.2)
    verdict = compare(promised, after(left_rows_per_s=100.0 * factor, latency_s=0.2 * factor)).verdict

    assert verdict.startswith("rows leaving")
    assert "; latency" in verdict


def test_a_nearly_idle_host_is_forgiven_a_few_hundredths() -> None:
    """Twice the promised utilisation is no surprise when it is 4 % instead of 2 %; latency knows no such mercy."""
    assert compare(Expectation(utilisation=0.02), after(busy=0.04)).verdict == "as expected"
    assert compare(Expectation(utilisation=0.02), after(busy=0.15)).verdict == "busiest host 0.15 instead of 0.02"
    assert compare(Expectation(utilisation=0.8), after(busy=1.0)).verdict == "busiest host 1 instead of 0.8"
    assert compare(Expectation(latency_s=0.02), after(latency_s=0.04)).verdict == "latency 0.04 s instead of 0.02 s"


def test_the_busiest_host_is_one_that_runs() -> None:
    """What a host that is on its way out still does was not promised to anybody."""
    hosts = {
        "host-0": host_observation("host-0", utilisation=0.3),
        "host-1": host_observation("host-1", utilisation=0.9, state=HostState.RELEASING),
        "host-2": host_observation("host-2", utilisation=0.0, state=HostState.STARTING),
    }
    outcome = compare(Expectation(utilisation=0.3), after(hosts=hosts))

    assert outcome.measured.utilisation == 0.3
    assert outcome.verdict == "as expected"


def test_rates_are_per_second_of_an_interval_of_any_length() -> None:
    promised = Expectation(processed_rows_per_s=100.0)

    assert compare(promised, after(left_rows_per_s=100.0, interval_s=7.0)).verdict == "as expected"


def test_the_latency_that_counts_is_the_one_the_slo_speaks_of() -> None:
    late_tail = Latency(rows=6000.0, mean_s=1.0, p50_s=0.2, p90_s=0.4, p99_s=9.0, max_s=30.0, slo_s=0.4)

    assert compare(Expectation(latency_s=0.4), after(latency=late_tail)).measured.latency_s == 0.4


def test_a_stall_is_not_better_than_the_latency_that_was_promised() -> None:
    stalled = observation(latency=latency(0.0, 0.0))
    assert stalled.latency.rows == 0
    outcome = compare(Expectation(latency_s=2.0), stalled)
    assert outcome.measured.latency_s is None
    assert outcome.verdict == "latency unknown instead of 2 s: no row left"
