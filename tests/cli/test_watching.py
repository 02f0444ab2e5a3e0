"""What a live run looks like on a terminal while it goes on."""

from __future__ import annotations

import io

import numpy as np
import pyspark.sql.functions as F
import pytest
from rich.console import Console

import springtide
from springtide.backends.spark.fusion import pool_of
from springtide.cli.watching import Lines, View
from springtide.live import LiveRun
from springtide.model.action import AddHosts
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.decision import Decision
from springtide.model.observation import HostObservation, HostState, Latency, Observation, OperatorObservation, ShardLoads
from springtide.plan.policies.static import Static


@pytest.fixture
def live() -> LiveRun:
    app = springtide.Application("clicks", slo=springtide.SLO(latency_s=5, percentile=0.9))
    rows = app.source("rows", lambda spark: spark.readStream.format("rate").load())
    app.sink(app.operator("count", lambda df: df.groupBy("value").agg(F.count("*")), rows, shards=4), lambda df, batch: None)
    return LiveRun(application=app, pool=pool_of(1, 600 * 2**20, 1, 4), policy=Static(), policy_name="static", folder="x")


def seen(end_s: float, *, rows: float, latency_s: float) -> Observation:
    allocation = Allocation(("host-0",), {"count": OperatorAllocation(("host-0", "host-0"), (0, 1, 0, 1))})
    nothing = np.zeros(4)
    loads = ShardLoads(rows=nothing, busy_s=nothing.copy(), backlog_rows=nothing.copy(), state_bytes=nothing.copy())
    states = {"host-0": HostState.RUNNING, "host-1": HostState.STARTING}
    return Observation(
        index=int(end_s // 2),
        start_s=end_s - 2.0,
        end_s=end_s,
        source_rows={"rows": rows},
        operators={
            "count": OperatorObservation(
                name="count",
                offered_rows=rows,
                processed_rows=rows,
                emitted_rows=rows,
                dropped_rows=0.0,
                backlog_rows=1234.0,
                backlog_s=1.0,
                service_time_s=0.001,
                utilisation=0.5,
                busy_share=0.5,
                latency_s=latency_s,
                replica_utilisation=np.array([0.5, 0.5]),
                shards=loads,
            )
        },
        hosts={
            name: HostObservation(
                name=name, state=s, cores=1, utilisation=0.5, busy_share=0.5, memory_bytes=0.0, network_bytes_per_s=0.0
            )
            for name, s in states.items()
        },
        latency=Latency(rows=rows, p90_s=latency_s, slo_s=latency_s),
        observed=allocation,
        requested=allocation,
        core_s=2.0,
        downtime_s=0.0,
        reconfigurations={},
        events=("source rows does not say how far behind it is",) if end_s == 2.0 else (),
    )


def decided() -> Decision:
    return Decision(planned=Allocation(("host-0",), {}), reason="1.8 cores of work are coming")


def shown(live: LiveRun, *observations: Observation) -> str:
    out = io.StringIO()
    with View(live, Console(file=out, force_terminal=True, width=100, color_system=None)) as view:
        for observation in observations:
            view.observation(observation)
            view.decision(observation, decided(), [AddHosts(("host-1",))] if observation is observations[-1] else [])
    return out.getvalue()


def test_the_view_shows_what_is_and_what_was_decided_last(live: LiveRun) -> None:
    text = shown(live, seen(2.0, rows=100.0, latency_s=1.0), seen(4.0, rows=800.0, latency_s=2.0))
    last = text[text.rindex("clicks under static, 4 s") :]

    assert "400 rows/s" in last
    assert "▁█" in last  # the load was an eighth of what it is
    assert "1,234 rows" in last
    assert "90 % within 2.0 s; 5 s are allowed" in last
    assert "1 of at most 4, 1 starting" in last
    assert "count 2" in last
    assert "1.8 cores of work are coming" in last
    assert "does not say how far behind it is" in text  # it scrolled by


def test_an_interval_in_which_nothing_came_through_has_no_latency(live: LiveRun) -> None:
    text = shown(live, seen(2.0, rows=0.0, latency_s=0.0))

    assert "no row came through just now; 5 s are allowed" in text


def test_before_the_first_interval_the_view_says_so(live: LiveRun) -> None:
    out = io.StringIO()
    with View(live, Console(file=out, force_terminal=True, width=100, color_system=None)):
        pass

    assert "waiting for the first interval" in out.getvalue()


def test_without_a_terminal_there_is_a_line_for_each_interval_and_decision(
    live: LiveRun, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines(live)
    observation = seen(2.0, rows=100.0, latency_s=1.0)
    lines.observation(observation)
    lines.decision(observation, decided(), [AddHosts(("host-1",))])
    lines.decision(observation, decided(), [])

    first, event, decision = capsys.readouterr().err.splitlines()
    assert first.split() == [
        "2.0",
        "s",
        "50",
        "rows/s",
        "backlog",
        "1,234",
        "rows",
        "p90",
        "1.0",
        "of",
        "5",
        "s",
        "hosts",
        "1",
        "replicas",
        "count",
        "2",
    ]
    assert "does not say" in event
    assert decision.strip() == "1.8 cores of work are coming: add host-1"
