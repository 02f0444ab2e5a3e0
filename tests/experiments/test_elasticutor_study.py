"""Elasticutor's evaluation at the scale of a cluster: the setting, back-pressure, what the page says, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from published import assert_as_published

from springtide.backends.simulator.settings import Moves, SimulatorSettings
from springtide.execute.diff import actions
from springtide.experiments.elasticutor import (
    STUDY,
    cluster_sizes,
    exchange,
    executors_and_shards,
    paper,
    shuffles,
    world,
)
from springtide.experiments.elasticutor.backpressure import BackpressureBackend, Generator, Limits
from springtide.experiments.running import attempt
from springtide.experiments.study import Claim, Experiment, Finding, Run
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Application, KeyDistribution, Operator
from springtide.sweeping.in_turn import run_in_turn

MINE = (shuffles.EXPERIMENT, executors_and_shards.EXPERIMENT, exchange.EXPERIMENT, cluster_sizes.EXPERIMENT)
SMALL = Application(
    name="small",
    operators=(
        Operator(name="count", service_time_s=0.001, shards=64, state_bytes_per_shard=1024, keys=KeyDistribution(zipf=0.8)),
    ),
)
POOL = replace(world.cluster(2), host=replace(world.cluster().host, cores=2))


def backend(
    limits: Limits, *, rows_per_s: float = 8000.0, buffer_rows: float = 1000.0, application: Application = SMALL
) -> BackpressureBackend:
    """Two hosts of two cores, with a replica on each core."""
    settings = SimulatorSettings(step_s=0.05, interval_s=1.0, moves=Moves(synchronisation_s=0.0))
    generator = Generator(rows_per_s=rows_per_s, duration_s=20.0, buffer_rows=buffer_rows)
    hosts = ("host-0", "host-1")
    routes = tuple(shard % 4 for shard in range(64))
    start = Allocation(hosts, {"count": OperatorAllocation(("host-0", "host-0", "host-1", "host-1"), routes)})
    return BackpressureBackend(application, POOL, settings, generator, limits, seed=1, start=start)


def second(of: BackpressureBackend, end_s: float) -> Any:
    of.clock.advance_to(end_s)
    return of.observe()


# --- back-pressure --------------------------------------------------------------------------------------------------


def test_the_busiest_replica_decides_what_gets_through() -> None:
    held_back = backend(Limits())
    second(held_back, 5.0)
    seen = second(held_back, 10.0)
    rows = seen.operators["count"].shards.rows
    busiest = np.bincount(np.arange(64) % 4, weights=rows).max() / rows.sum()

    assert seen.operators["count"].processed_rows == pytest.approx(5.0 * 1000 / busiest, rel=0.01)
    assert seen.operators["count"].replica_utilisation.max() == pytest.approx(1.0, abs=0.01)
    assert seen.operators["count"].backlog_rows < 4 * 0.1 * 1000 + 1


@pytest.mark.parametrize(("replicas", "cores"), [(4, 2), (16, 8), (24, 8)])
def test_replicas_that_share_cores_settle_at_what_the_cores_can_do(replicas: int, cores: int) -> None:
    """The busiest of them decides what is let in, and it must not have to wait for those that come before it."""
    host = replace(world.cluster().host, cores=cores)
    start = Allocation(
        ("host-0",), {"count": OperatorAllocation(("host-0",) * replicas, tuple(s % replicas for s in range(64)))}
    )
    mild = replace(SMALL.operators[0], keys=KeyDistribution(zipf=0.2))
    held_back = BackpressureBackend(
        replace(SMALL, operators=(mild,)),
        replace(POOL, host=host, min_hosts=1, max_hosts=1),
        SimulatorSettings(step_s=0.05, interval_s=0.05),
        Generator(rows_per_s=1050.0 * cores, duration_s=10.0, buffer_rows=1000.0 * cores),
        Limits(),
        start=start,
    )
    second(held_back, 5.0)
    rates = [second(held_back, 5.0 + 0.05 * step).operators["count"].processed_rows / 0.05 for step in range(1, 41)]
    assert min(rates) == pytest.approx(1000.0 * cores, rel=0.01)
    assert max(rates) == pytest.approx(1000.0 * cores, rel=0.01)


def test_policies_are_told_what_the_generator_makes_and_rows_wait_for_what_the_buffer_holds() -> None:
    held_back = backend(Limits(), buffer_rows=500.0)
    second(held_back, 5.0)
    waited_row_s = held_back.waited_row_s
    seen = second(held_back, 10.0)

    assert seen.source_rows == {"source": pytest.approx(5 * 8000.0)}
    assert held_back.waited_row_s - waited_row_s == pytest.approx(5 * 500.0, rel=0.01)


def test_without_overload_everything_is_let_in_at_once() -> None:
    free = backend(Limits(), rows_per_s=1000.0)
    seen = second(free, 5.0)

    assert seen.operators["count"].offered_rows == pytest.approx(5000.0)
    assert free.waited_row_s == 0.0


def test_a_repartitioning_stops_the_input_for_as_long_as_it_takes() -> None:
    stopped = backend(Limits(repartition_s=2.0), rows_per_s=1000.0)
    before = second(stopped, 1.0)
    placed = before.requested.operators["count"]
    moved = OperatorAllocation(placed.replica_hosts, (1, *placed.shard_replicas[1:]))
    stopped.apply(actions(before.requested, before.requested.with_operator("count", moved)))

    assert second(stopped, 3.0).operators["count"].offered_rows == 0.0
    assert second(stopped, 4.0).operators["count"].offered_rows > 1000.0, "what has waited comes now"


def test_an_executors_rows_all_pass_the_link_of_its_host() -> None:
    wide = replace(SMALL, operators=(replace(SMALL.operators[0], row_bytes=125_000),))
    one, straight = backend(Limits(executors=1), application=wide), backend(Limits(), application=wide)

    assert second(one, 5.0).operators["count"].offered_rows == pytest.approx(5 * 1000, rel=0.01), "125 MB/s"
    assert second(straight, 5.0).operators["count"].offered_rows > 5 * 1100
    assert one.remote_bytes > 0
    assert straight.remote_bytes == 0


def test_executors_on_one_host_each_send_nothing_to_other_hosts() -> None:
    application = SMALL
    at_home = backend(Limits(executors=2), application=application)
    hosts = ("host-0", "host-1")
    routes = tuple(shard // 32 * 2 + shard % 2 for shard in range(64))
    start = Allocation(hosts, {"count": OperatorAllocation(("host-0", "host-0", "host-1", "host-1"), routes)})
    at_home.apply(actions(second(at_home, 1.0).requested, start))
    far = at_home.remote_bytes
    second(at_home, 3.0)

    assert far > 0, "at the start both executors had shards on both hosts"
    assert at_home.remote_bytes == far


# --- the setting ----------------------------------------------------------------------------------------------------


def test_the_cluster_and_the_micro_benchmark_are_the_papers() -> None:
    pool, operator = world.cluster(), world.micro_benchmark(world.Workload()).operators[0]

    assert (pool.min_hosts, pool.max_hosts, pool.host.cores) == (32, 32, 8)
    assert (operator.shards, operator.row_bytes, operator.state_bytes_per_shard) == (8192, 128, 32 * 1024)
    assert (operator.keys.keys, operator.keys.zipf, operator.keys.shuffles_per_minute) == (10_000, 0.5, 2)
    assert world.most_rows_per_s(world.micro_benchmark(world.Workload()), pool) == pytest.approx(256_000)
    assert world.hottest_key_limit_per_s() == pytest.approx(198_500, rel=0.01)


def test_the_exchange_has_a_transactor_and_eleven_operators_behind_it() -> None:
    application = world.exchange_application(2)

    assert [e.downstream for e in application.outputs("transactor")] == [o.name for o in application.operators[1:]]
    assert len(application.operators) == 1 + paper.ANALYTICS
    assert world.most_rows_per_s(application, world.cluster()) == pytest.approx(300_000)


@pytest.mark.parametrize("executors", [1, 8, 32, 256])
@pytest.mark.parametrize("policy", [world.STATIC, world.ELASTIC])
def test_every_core_has_a_replica_at_the_start(policy: str, executors: int) -> None:
    application = world.micro_benchmark(world.Workload(executors=executors))
    start = world.start(policy, application, world.cluster(), executors)
    start.check(application)

    assert {start.replicas_on(host) for host in start.hosts} == {8}
    if policy == world.ELASTIC:
        placed = start.operators["calculator"]
        per_executor = 256 // executors
        owners = {(s // world.Workload().shards_per_executor, r // per_executor) for s, r in enumerate(placed.shard_replicas)}
        assert all(executor == owner for executor, owner in owners)


def test_the_exchanges_executors_find_a_core_each() -> None:
    application, pool = world.exchange_application(2), world.cluster(8)
    start = world.start(world.ELASTIC, application, pool, world.exchange_executors(8))

    start.check(application)
    assert start.replicas <= 64


# --- the page -------------------------------------------------------------------------------------------------------


def made_up(experiment: Experiment, found: dict[str, dict[str, Any]]) -> list[Finding]:
    """Findings for all quick runs: figures by policy, the same whatever the other parameters."""
    rates = [100_000] * 70
    return [
        Finding(
            run=Run(paper="elasticutor", experiment=experiment.name, parameters=parameters, seed=seed),
            found={"processed_per_s": rates, "migrated_mb_per_s": 1.0, "remote_mb_per_s": 1.0, **found[parameters["policy"]]},
            measured={"scheduling_ms": 5.0},
        )
        for parameters, seed in experiment.runs(True)
    ]


def claims(experiment: Experiment, findings: Sequence[Finding]) -> dict[str, Claim]:
    return {claim.says: claim for section in experiment.sections(findings) for claim in section.claims}


def starting(said: dict[str, Claim], words: str) -> Claim:
    return next(claim for says, claim in said.items() if says.startswith(words))


AS_IN_THE_PAPER = {
    "static": {"throughput_per_s": 100_000.0, "latency_ms": 2000.0},
    "resource-centric": {"throughput_per_s": 50_000.0, "latency_ms": 5000.0},
    "naive-ec": {"throughput_per_s": 200_000.0, "latency_ms": 60.0, "migrated_mb_per_s": 9.0, "remote_mb_per_s": 9.0},
    "elastic-executors": {"throughput_per_s": 210_000.0, "latency_ms": 50.0},
    "tide": {"throughput_per_s": 220_000.0, "latency_ms": 40.0, "migrated_mb_per_s": 0.1},
}
THE_OTHER_WAY_ROUND = {
    **AS_IN_THE_PAPER,
    "elastic-executors": {
        "throughput_per_s": 90_000.0,
        "latency_ms": 4000.0,
        "migrated_mb_per_s": 10.0,
        "remote_mb_per_s": 10.0,
    },
    "tide": {"throughput_per_s": 80_000.0, "latency_ms": 5000.0, "migrated_mb_per_s": 20.0},
}


@pytest.mark.parametrize(
    ("experiment", "words"),
    [
        (shuffles.EXPERIMENT, "Elastic executors let more through"),
        (shuffles.EXPERIMENT, "Elastic executors have at least twice"),
        (shuffles.EXPERIMENT, "Elastic executors' latency is one to two orders"),
        (shuffles.EXPERIMENT, "tide has a lower latency"),
        (shuffles.EXPERIMENT, "tide lets more through"),
        (exchange.EXPERIMENT, "Both executor-centric approaches about double"),
        (exchange.EXPERIMENT, "Both have a latency one to two orders"),
        (exchange.EXPERIMENT, "Elasticutor's scheduler migrates less"),
        (exchange.EXPERIMENT, "Elasticutor's scheduler sends less"),
        (exchange.EXPERIMENT, "tide lets more orders through"),
        (exchange.EXPERIMENT, "tide migrates less"),
        (cluster_sizes.EXPERIMENT, "tide lets more through"),
        (executors_and_shards.EXPERIMENT, "tide lets more through"),
    ],
)
def test_a_claim_holds_when_the_figures_say_so_and_not_otherwise(experiment: Experiment, words: str) -> None:
    assert starting(claims(experiment, made_up(experiment, AS_IN_THE_PAPER)), words).holds

    refuted = starting(claims(experiment, made_up(experiment, THE_OTHER_WAY_ROUND)), words)
    assert not refuted.holds
    assert refuted.why


def test_the_time_after_a_shuffle_is_counted_in_seconds_below_what_a_policy_can_do() -> None:
    findings = made_up(shuffles.EXPERIMENT, AS_IN_THE_PAPER)
    slow = [100_000] * 30 + [10_000] * 4 + [100_000] * 26 + [10_000] * 6 + [100_000] * 4
    slowed = [
        replace(
            f, found={**f.found, "processed_per_s": slow if f.run.parameters["policy"] == "resource-centric" else [1000] * 70}
        )
        for f in findings
    ]

    claim = starting(claims(shuffles.EXPERIMENT, slowed), "After a shuffle")
    assert claim.here == "5.0 s against 0.0 s"
    assert claim.holds


@pytest.mark.parametrize("experiment", MINE, ids=lambda experiment: experiment.name)
def test_pictures_are_drawn_and_tables_are_whole(experiment: Experiment, tmp_path: Any) -> None:
    for section in experiment.sections(made_up(experiment, AS_IN_THE_PAPER)):
        assert section.text
        for picture in section.pictures:
            picture.draw(tmp_path / f"{picture.name}.png")
            assert (tmp_path / f"{picture.name}.png").stat().st_size > 1000


def test_the_study_has_all_experiments_of_the_paper() -> None:
    assert {experiment.name for experiment in MINE} <= {experiment.name for experiment in STUDY.experiments}
    assert len({str(run) for run in STUDY.runs(quick=True)}) == len(STUDY.runs(quick=True)), "no run is done twice"


def test_a_run_finds_the_same_when_it_is_done_again() -> None:
    parameters = {"policy": "elastic-executors", "workload": "default", "executors": 8, "shards": 16, "duration_s": 13.0}
    first, again = (executors_and_shards.run(parameters, 3)[0] for _ in range(2))

    assert first == again
    assert first["throughput_per_s"] > 0


# --- what comes out -------------------------------------------------------------------------------------------------

HOLDS = {
    "shuffles": (
        "Elastic executors let more through",
        "Resource-centric beats static",
        "Resource-centric is useless",
        "Static is poor",
        "Elastic executors' latency is one to two orders",
        "tide has a lower latency",
        "After a shuffle",
    ),
    "executors-and-shards": (
        "More shards",
        "With as many executors as cores",
        "A single executor loses much",
    ),
    "exchange": (
        "Elasticutor's scheduler is better",
        "Elasticutor's scheduler sends less",
        "tide lets more orders through",
        "tide migrates less",
    ),
    "cluster-sizes": ("Throughput grows", "tide lets more through"),
}


@pytest.mark.full
def test_the_quick_variant_shows_what_the_paper_claims_or_says_why_not() -> None:
    names = {experiment.name for experiment in MINE}
    outcomes = run_in_turn([run for run in STUDY.runs(quick=True) if run.experiment in names], attempt, lambda *_: None)
    findings = [outcome for outcome in outcomes if isinstance(outcome, Finding)]
    assert len(findings) == len(outcomes), [str(outcome) for outcome in outcomes if not isinstance(outcome, Finding)]

    said = {e.name: claims(e, [f for f in findings if f.run.experiment == e.name]) for e in MINE}
    assert_as_published("elasticutor", [claim for of in said.values() for claim in of.values()])
    for experiment, words in HOLDS.items():
        for start in words:
            claim = starting(said[experiment], start)
            assert claim.holds, f"{claim.says}: {claim.here}"

    results = shuffles.Results([f for f in findings if f.run.experiment == "shuffles"])
    for omega in results.dynamic:
        static, elastic = results.throughput("static", omega), results.throughput("elastic-executors", omega)
        assert elastic > 1.5 * static, "twice is more than the most frequent key allows: see the page"
        assert results.throughput("tide", omega) >= 0.9999 * elastic
    assert results.latency_ms("elastic-executors", 16) < results.latency_ms("resource-centric", 16) / 10
    assert results.latency_ms("tide", 16) < results.latency_ms("elastic-executors", 16)
