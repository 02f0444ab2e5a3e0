"""Elasticutor, one executor: how long reassigned shards stand still, and how far an executor scales with its cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from published import assert_as_published

from springtide.experiments.elasticutor import paper, reassignment, reassignment_page, single_executor, single_executor_page
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.curves import could_do_per_s
from springtide.experiments.elasticutor.reassignment import STEP_S, one_shard, split_s, standstill_s
from springtide.experiments.elasticutor.single_executor import Setting, Span, measure
from springtide.experiments.elasticutor.world import ELASTIC, RESOURCE_CENTRIC, TIDE
from springtide.experiments.running import attempt
from springtide.experiments.study import Claim, Experiment, Finding, Run, Section
from springtide.model.allocation import OperatorAllocation
from springtide.sweeping.in_turn import run_in_turn

PAPER = "elasticutor"


def finding(experiment: Experiment, parameters: Mapping[str, Any], found: Mapping[str, Any]) -> Finding:
    return Finding(run=Run(paper=PAPER, experiment=experiment.name, parameters=parameters), found=found)


def claim(sections: list[Section], beginning: str) -> Claim:
    return next(c for section in sections for c in section.claims if c.says.startswith(beginning))


# --- how long a moved shard stands still ----------------------------------------------------------------------------


def test_a_shard_that_changes_replica_within_its_node_waits_for_the_synchronisation_only() -> None:
    move = one_shard(ELASTIC, "intra-node", upstream=4, state_bytes=single.LARGE_STATE_BYTES)
    synchronisation, migration = split_s(move)
    assert synchronisation[0] == pytest.approx(0.002, abs=STEP_S)
    assert migration[0] == 0.0


def test_a_shard_that_changes_node_waits_for_its_state_too() -> None:
    move = one_shard(ELASTIC, "inter-node", upstream=4, state_bytes=single.MB)
    synchronisation, migration = split_s(move)
    assert synchronisation[0] == pytest.approx(0.002, abs=STEP_S)
    assert migration[0] == pytest.approx(single.MB / paper.BANDWIDTH_BYTES_PER_S, abs=STEP_S)


def test_the_resource_centric_synchronisation_grows_with_the_upstream_executors() -> None:
    times_s = [standstill_s(one_shard(RESOURCE_CENTRIC, "intra-node", upstream=n, state_bytes=0))[0] for n in (1, 8)]
    assert times_s[1] - times_s[0] == pytest.approx(7 * single.PER_UPSTREAM_S, abs=2 * STEP_S)


def test_shards_that_take_the_same_link_wait_for_one_another() -> None:
    one = one_shard(ELASTIC, "inter-node", upstream=1, state_bytes=single.MB)
    both = replace(one, before=replace(one.before, shard_replicas=(0, 0, 2)), moved=2)
    both = replace(both, after=replace(one.after, shard_replicas=(2, 2, 2)))
    first_s, second_s = sorted(standstill_s(both))
    assert second_s - first_s == pytest.approx(single.MB / paper.BANDWIDTH_BYTES_PER_S, abs=2 * STEP_S)


def test_a_reassignment_is_seen_with_no_more_shards_than_it_takes() -> None:
    hosts = ("a", "a", "b")
    before = OperatorAllocation(hosts, (0, 1, 2, 0, 1, 2))
    after = OperatorAllocation(hosts, (0, 1, 1, 1, 1, 2))
    small = reassignment._only_moved(before, after, single.MOVES[ELASTIC])
    assert (small.moved, len(small.before.shard_replicas)) == (2, 3)
    assert small.is_intra() == [False, True]


def test_a_run_finds_the_same_again() -> None:
    parameters = {"figure": "9b", "approach": ELASTIC, "way": "inter-node", "state_bytes": paper.STATE_BYTES_PER_SHARD}
    assert reassignment.run(parameters, 0) == reassignment.run(parameters, 0)


# --- one executor ---------------------------------------------------------------------------------------------------


def test_the_first_cores_of_an_executor_are_on_its_own_node() -> None:
    hosts = Setting(approach=ELASTIC, cores=16).start().operators["calculator"].replica_hosts
    assert hosts == ("host-0",) * 8 + ("host-1",) * 8


def test_an_executor_is_limited_by_the_link_of_its_node_and_tide_is_not() -> None:
    span = Span(warm_up_s=3.0, window_s=2.0)
    elastic, tide = (
        measure(Setting(approach=approach, cores=32, row_bytes=8192, shards=512), 1.0, span, 0) for approach in (ELASTIC, TIDE)
    )
    assert elastic["rows_per_s"] == pytest.approx(paper.BANDWIDTH_BYTES_PER_S / 8192, rel=0.01)
    assert tide["rows_per_s"] > 1.5 * elastic["rows_per_s"]


def test_a_measurement_finds_the_same_again() -> None:
    setting, span = Setting(approach=ELASTIC, cores=16, shards=256, shuffles_per_minute=16), Span(warm_up_s=2.0, window_s=4.0)
    assert measure(setting, 1.0, span, 3) == measure(setting, 1.0, span, 3)


# --- the page, of made-up findings ----------------------------------------------------------------------------------


def made_up_reassignments(centric_s: float = 2.0, tide_s: float = 0.1) -> list[Finding]:
    experiment = reassignment_page.EXPERIMENT
    synchronisation_s = {ELASTIC: 0.002, RESOURCE_CENTRIC: centric_s, TIDE: 0.002}
    found = [
        finding(
            experiment,
            {"figure": "8", "approach": approach},
            {
                "ways": {
                    way: {"shards": 10, "synchronisation_s": sync_s, "migration_s": 0.0003 * (way == "inter-node")}
                    for way in reassignment.WAYS
                },
                "decisions": 1,
                "standstill_s": tide_s if approach == TIDE else 1.0,
                "rows_per_s": 1000.0,
            },
        )
        for approach, sync_s in synchronisation_s.items()
    ]
    for approach in reassignment.APPROACHES:
        for upstream in (1, 256):
            sync_s = 0.002 if approach == ELASTIC else centric_s * (0.1 if upstream == 1 else 1.0)
            found.append(
                finding(
                    experiment,
                    {"figure": "9a", "approach": approach, "upstream": upstream},
                    {"synchronisation_s": sync_s, "migration_s": 0.0003},
                )
            )
        found += [
            finding(
                experiment,
                {"figure": "9b", "approach": approach, "way": way, "state_bytes": size},
                {"synchronisation_s": 0.002, "migration_s": size / 125e6 * (way == "inter-node")},
            )
            for way in reassignment.WAYS
            for size in (32 * single.KB, 32 * single.MB)
        ]
    return found


def test_reassignment_claims_follow_the_figures() -> None:
    sections = reassignment_page.sections(made_up_reassignments())
    assert claim(sections, "A reassignment takes much longer").holds
    assert claim(sections, "The resource-centric one").holds
    assert claim(sections, "tide's shards").holds

    sections = reassignment_page.sections(made_up_reassignments(centric_s=0.003, tide_s=2.0))
    assert not claim(sections, "A reassignment takes much longer").holds
    assert not claim(sections, "The resource-centric one").holds
    assert not claim(sections, "tide's shards").holds


def made_up_executors(link_rows_per_s: float, tide: float = 1.0) -> list[Finding]:
    experiment = single_executor_page.EXPERIMENT
    found = []
    for parameters, _ in single_executor.runs(True):
        cores, gain = parameters["cores"], tide if parameters["approach"] == TIDE else 1.0
        if parameters["figure"] == "10":
            most = could_do_per_s(cores, parameters["tuple_ms"] / 1e3)
            link = link_rows_per_s * 128 / parameters["row_bytes"] if parameters["approach"] == ELASTIC else np.inf
            values = {"rows_per_s": gain * min(most, link), "p99_s": parameters["tuple_ms"] / 1e3 * (100 if most > link else 1)}
        else:
            slow = parameters["state_bytes"] == single.LARGE_STATE_BYTES and parameters["approach"] == ELASTIC
            part = 4 / parameters["shuffles_per_minute"] / 4 if slow else 0.9
            values = {"rows_per_s": gain * part * could_do_per_s(cores, 0.001), "shards_moved": 7}
        found.append(finding(experiment, parameters, values))
    return found


def test_single_executor_claims_follow_the_figures() -> None:
    sections = single_executor_page.sections(made_up_executors(link_rows_per_s=0.9e6))
    assert all(c.holds for section in sections for c in section.claims)

    sections = single_executor_page.sections(made_up_executors(link_rows_per_s=1e9, tide=0.9))
    assert not claim(sections, "It cannot use more than 16 cores").holds
    assert not claim(sections, "With tuples of 0.1 ms").holds
    assert not claim(sections, "On the whole cluster tide is as good as the executor (").holds
    assert not claim(sections, "On the whole cluster tide is as good as the executor with small").holds
    assert not claim(sections, "tide is as good as the executor with fewer cores").holds


# --- the quick variant ----------------------------------------------------------------------------------------------

HOLD = (
    "A reassignment takes much longer in resource-centric",
    "tide's shards stand still for less time",
    "The elastic synchronisation takes about 2 ms",
    "The resource-centric one takes 2-3 orders of magnitude longer",
    "The migration within a node is negligible",
    "The migration between nodes grows much",
    "One executor scales out to the whole cluster",
    "It cannot use more than 16 cores efficiently",
    "In most settings latency does not grow noticeably",
    "With tuples of 0.1 ms or less",
    "On the whole cluster tide is as good as the executor (to within 2 %), better where a link is full",
    "With 16 shuffles a minute an executor scales efficiently under all sizes of state but 32 MB",
    "With 32 MB of state it scales considerably less",
    "On the whole cluster tide is as good as the executor with small state",
)


@pytest.mark.full
def test_the_quick_variant_shows_what_the_paper_claims() -> None:
    claims: list[Claim] = []
    for experiment in (reassignment_page.EXPERIMENT, single_executor_page.EXPERIMENT):
        runs = [Run(paper=PAPER, experiment=experiment.name, parameters=p, seed=seed) for p, seed in experiment.runs(True)]
        outcomes = run_in_turn(runs, attempt, lambda _: None)
        findings = [outcome for outcome in outcomes if isinstance(outcome, Finding)]
        assert len(findings) == len(runs)
        claims += [c for section in experiment.sections(findings) for c in section.claims]
    assert_as_published("elasticutor", claims)
    for beginning in HOLD:
        assert next(c for c in claims if c.says.startswith(beginning)).holds, beginning
