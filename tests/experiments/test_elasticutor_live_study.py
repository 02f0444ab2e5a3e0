"""Elasticutor on real Spark: what is run, what is told of it, how `--live` is asked for, and one run that is really live."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

from ran import Ran, assert_refused
from springtide.experiments import registry
from springtide.experiments.elasticutor_live import STUDY, exchange, reassignment, shuffles, world
from springtide.experiments.elasticutor_live.measuring import (
    LiveBatch,
    latencies,
    rates,
    reassignments,
    rows_per_s,
    transients_s,
    usual,
)
from springtide.experiments.elasticutor_live.reassignment import ShardByShard, moved
from springtide.experiments.elasticutor_live.tuples import Tuples
from springtide.experiments.elasticutor_live.wording import Results
from springtide.experiments.elasticutor_live.world import ELASTIC, NAIVE, RESOURCE_CENTRIC, STATIC, TIDE
from springtide.experiments.pages import page, write
from springtide.experiments.running import attempt
from springtide.experiments.study import Claim, Experiment, Failure, Finding, Run, Section, Study, Values
from springtide.model.allocation import OperatorAllocation
from springtide.plan.registry import policies

Springtide = Callable[..., Ran]
HERE = OperatorAllocation(("a", "a", "b", "b"), (0, 1, 2, 3))
THROUGHPUT = {STATIC: 100.0, RESOURCE_CENTRIC: 90.0, NAIVE: 130.0, ELASTIC: 140.0, TIDE: 145.0}
LATENCY_MS = {STATIC: 9000.0, RESOURCE_CENTRIC: 12_000.0, NAIVE: 4100.0, ELASTIC: 4000.0, TIDE: 3900.0}


# --- what is measured, from the times of batches ---------------------------------------------------------------------


def batch(began_s: float, took_s: float, rows: float, followed: OperatorAllocation = HERE, age_s: float = 1.0) -> LiveBatch:
    return LiveBatch(
        began_s=began_s,
        ended_s=began_s + took_s,
        rows=rows,
        ages_s=np.array([age_s]),
        rows_aged=np.array([rows]),
        followed=followed,
    )


def test_a_batch_across_the_end_of_a_window_counts_in_part_and_standstill_counts_as_nothing() -> None:
    batches = [batch(0, 2, 200), batch(2, 2, 200), batch(8, 4, 400)]

    assert rows_per_s(batches, 0, 10) == pytest.approx((200 + 200 + 200) / 10)
    assert rates(batches, 0, 10, 2.0) == pytest.approx([100, 100, 0, 0, 100])


def test_latency_is_of_rows_not_of_batches() -> None:
    found = latencies([batch(0, 1, 99, age_s=1.0), batch(1, 1, 1, age_s=101.0)])

    assert (found.mean_s, found.p50_s, found.p99_s) == (2.0, 1.0, 1.0)


def test_what_a_change_costs_is_seen_beside_undisturbed_batches() -> None:
    there = moved(HERE, 0, between_hosts=True)
    quiet = [batch(n, 0.9, 10) for n in range(6)]
    disturbed = [batch(9, 1.9, 10, there), batch(11, 1.1, 10, there)]
    later = [batch(13 + n, 0.9, 10, there) for n in range(4)]

    (found,) = reassignments([*quiet, *disturbed, *later])

    assert found.between_hosts
    assert found.shards == 1
    assert found.synchronisation_s == pytest.approx((9 - 5.9) - 0.1)
    assert found.migration_s == pytest.approx(1.0 + 0.2)
    assert usual([*quiet, *disturbed, *later]).noise_s == pytest.approx(0.0)


def test_a_shard_that_stays_on_its_host_is_no_move_between_hosts() -> None:
    there = moved(HERE, 0, between_hosts=False)
    assert there.shard_replicas == (1, 1, 2, 3)
    batches = [*(batch(n, 0.9, 10) for n in range(4)), *(batch(4 + n, 0.9, 10, there) for n in range(6))]

    assert [(one.between_hosts, one.shards) for one in reassignments(batches)] == [(False, 1)]


def test_a_transient_is_the_time_of_slow_batches_from_the_row_at_which_keys_change() -> None:
    paces = [100, 100, 50, 50, 100, 100, 100]
    batches, at_s = [], 0.0
    for pace in paces:
        batches.append(batch(at_s, 100 / pace, 100))
        at_s += 100 / pace

    assert transients_s(batches, [200.0, 400.0]) == pytest.approx([4.0, 0.0])
    assert transients_s(batches, []) == []
    assert transients_s(batches, [5000.0]) == []  # it was never met


# --- the setting and the runs ----------------------------------------------------------------------------------------


def test_runs_are_of_registered_policies_and_short() -> None:
    for quick, most_s in ((True, 9 * 60), (False, 30 * 60)):
        runs = STUDY.runs(quick=quick)
        assert sum(run.parameters["counted_s"] + world.WARM_UP_S for run in runs) < most_s
        assert all(run.parameters["counted_s"] + world.WARM_UP_S <= 100 for run in runs)
        assert {run.parameters["policy"] for run in runs if "policy" in run.parameters} <= set(policies())
        assert {run.experiment for run in runs} == {"shuffles", "reassignment", "exchange"}
    assert STUDY.live


def test_the_most_frequent_key_needs_as_much_of_a_core_as_in_the_paper() -> None:
    here = world.SLOTS / world.ROW_S / shuffles.hottest_limit_per_s()
    in_paper = 256 * 1000 / 198_500  # section 5.1: 10,000 keys of Zipf 0.5, 1 ms a row, 256 cores

    assert here == pytest.approx(in_paper, rel=0.05)


def test_shuffles_are_at_rows_of_the_trace() -> None:
    rows = Tuples(shuffles_per_minute=4, counted_s=20).rows_at_shuffles()
    half, full = world.rows_per_s() / 2, world.rows_per_s()

    assert rows[:2] == pytest.approx([10 * half + 5 * full, 10 * half + 20 * full])
    assert Tuples(shuffles_per_minute=0, counted_s=20).rows_at_shuffles() == []


def test_nobody_decides_before_the_first_batches_are_over() -> None:
    class View:
        now_s = 1.0
        requested = HERE

    decision, memory = world.made_policy(TIDE).decide(View(), "kept")  # type: ignore[arg-type]

    assert (decision.planned, memory) == (HERE, "kept")


def test_shards_move_one_by_one_within_a_host_and_then_to_another() -> None:
    class Requested:
        operators: ClassVar = {"calculator": HERE}

        def with_operator(self, _: str, placed: OperatorAllocation) -> OperatorAllocation:
            return placed

    class View:
        requested = Requested()

        def __init__(self, now_s: float) -> None:
            self.now_s = now_s

    script = ShardByShard(every_s=5.0)
    decided = []
    memory = script.start()
    for now_s in (9.0, 10.0, 12.0, 15.0):
        decision, memory = script.decide(View(now_s), memory)  # type: ignore[arg-type]
        decided.append(getattr(decision.planned, "shard_replicas", None))

    assert decided == [None, (1, 1, 2, 3), None, (2, 1, 2, 3)]


# --- what the page says, of made-up findings -------------------------------------------------------------------------


def finding(experiment: str, parameters: Values, measured: Values, wrong: int = 0) -> Finding:
    run = Run(paper=STUDY.name, experiment=experiment, parameters=parameters)
    return Finding(run=run, found={"wrong": wrong, "data": "made up", "offered_per_s": 240.0}, measured=measured)


def run_of(policy: str, factor: float = 1.0) -> dict[str, Any]:
    return {
        "throughput_per_s": THROUGHPUT[policy] * factor,
        "latency_ms": LATENCY_MS[policy],
        "latency_p99_ms": LATENCY_MS[policy] * 2,
        "transients_s": [6.0, 8.0] if policy == RESOURCE_CENTRIC else [2.0],
        "processed_per_s": [10, 100, 120],
        "latency_over_time_ms": [10, 1000, 1200],
        "changes": 3,
        "shards_moved": 4,
    }


def shuffled(omegas: Sequence[float] = (0, 4), **changes: Any) -> list[Finding]:
    return [
        finding("shuffles", {"policy": p, "shuffles_per_minute": omega, "counted_s": 26.0}, {**run_of(p), **changes})
        for p in shuffles.POLICIES
        for omega in omegas
    ]


def reassigned(rc_s: float = 3.0) -> list[Finding]:
    times = {ELASTIC: 0.02, RESOURCE_CENTRIC: rc_s}
    return [
        finding(
            "reassignment",
            {"approach": approach, "counted_s": 32.0},
            {
                **{f"{way} synchronisation_s": [time_s, time_s, time_s + 9] for way in reassignment.WAYS},
                **{f"{way} migration_s": [time_s / 2] for way in reassignment.WAYS},
                "usual_batch_s": 0.5,
                "noise_s": 0.05,
            },
        )
        for approach, time_s in times.items()
    ]


def exchanged() -> list[Finding]:
    return [
        finding("exchange", {"policy": p, "stocks": exchange.STOCKS, "counted_s": 26.0}, run_of(p)) for p in exchange.POLICIES
    ]


def claims(sections: Sequence[Section]) -> dict[str, Claim]:
    return {claim.says: claim for section in sections for claim in section.claims}


def that(said: dict[str, Claim], words: str) -> Claim:
    return next(claim for says, claim in said.items() if words in says)


def test_figure_6_says_what_holds_and_what_does_not() -> None:
    said = claims(shuffles.sections(shuffled()))

    assert that(said, "let more through than static and resource-centric").holds
    twice = that(said, "at least twice the throughput of static")
    assert (twice.here, twice.holds) == ("1.40 times", False)
    assert f"nobody can get beyond {world.rows_per_s():.0f}" in twice.why
    assert not that(said, "one to two orders of magnitude below").holds
    assert that(said, "tide lets as much through").holds
    assert that(said, "held up for longer").here == "7.0 s against 2.0 s"
    assert that(said, "Static is poor").holds
    assert that(said, "Every row is counted once").holds


def test_claims_follow_the_findings() -> None:
    lost = [
        replace(f, measured={**f.measured, "throughput_per_s": 80.0}) if f.run.parameters["policy"] in (ELASTIC, TIDE) else f
        for f in shuffled()
    ]
    said = claims(shuffles.sections([*lost[:-1], replace(lost[-1], found={**lost[-1].found, "wrong": 2})]))

    assert not that(said, "let more through than static and resource-centric").holds
    assert not that(said, "Every row is counted once").holds


def test_the_quick_variant_leaves_out_what_was_not_run() -> None:
    chosen = [parameters for parameters, _ in shuffles.runs(True)]
    findings = [f for f in shuffled() if {**f.run.parameters, "counted_s": chosen[0]["counted_s"]} in chosen]
    figure_6, _ = shuffles.sections(findings)

    assert len(findings) == 6
    assert figure_6.tables[0].rows[0] == ("0", "-", "90", "140", "-")
    assert not any("Static is poor" in claim.says for claim in figure_6.claims)
    assert np.isnan(Results(findings, "shuffles_per_minute").shown(TIDE, 0, "throughput_per_s"))


def test_figure_8_tells_synchronisation_from_migration() -> None:
    (section,) = reassignment.sections(reassigned())
    assert section.tables[0].rows[-1] == (RESOURCE_CENTRIC, "inter-node", "1", "3.00", "1.50", "0.50", "0.05")
    assert that(claims([section]), "mainly by its synchronisation").holds
    assert not that(claims(reassignment.sections(reassigned(rc_s=0.03))), "mainly by its synchronisation").holds


def test_figure_16_compares_the_worse_of_both_executor_centric_approaches() -> None:
    said = claims(exchange.sections(exchanged()))

    assert that(said, "double the throughput of static").here == "1.30 times"
    assert that(said, "better than naive-EC").holds
    assert not that(said, "below resource-centric's").holds


def test_the_page_says_that_it_was_measured(tmp_path: Path) -> None:
    written = write(STUDY, [*shuffled(), *reassigned(), *exchanged()], tmp_path, version="1+x", quick=True)

    text = written.page.read_text()
    assert "not the same in a rerun" in text
    assert "springtide reproduce elasticutor-live --quick" in text
    assert sorted(path.name for path in written.pictures) == [
        f"elasticutor-live-figure-{figure}.png" for figure in ("16", "6", "7", "8")
    ]
    first = json.loads(written.results.read_text().splitlines()[0])
    assert first["version"] == "1+x"
    assert "throughput_per_s" in first["measured"]
    assert "throughput_per_s" not in first["found"]


def test_an_experiment_with_a_failed_run_says_so_and_takes_no_other_with_it() -> None:
    run = Run(paper=STUDY.name, experiment="reassignment", parameters={"approach": ELASTIC})
    study = STUDY.without([Failure(run=run, error="SpringtideError: too busy", traceback="")])
    text = page(study, study.sections([*shuffled(), *exchanged()]), version="1", quick=True)

    assert "## reassignment: a run has failed" in text
    assert "too busy" in text
    assert "## Figure 16: the exchange" in text


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("edf", "--live"), "edf has no live runs; the papers that have some: elasticutor"),
        (("elasticuto", "--live"), "did you mean 'elasticutor'"),
        (("elasticutor", "--live", "--no-spark"), "leave out --no-spark"),
    ],
)
def test_mistakes_are_one_line(springtide: Springtide, arguments: tuple[str, ...], hint: str) -> None:
    assert_refused(springtide("reproduce", *arguments), hint)


def _runs(quick: bool) -> list[tuple[Values, int]]:
    return [({"policy": policy}, 0) for policy in (STATIC, TIDE)]


def _sections(findings: Sequence[Finding]) -> list[Section]:
    return [Section(title="what was found", text=", ".join(str(f.run.parameters["policy"]) for f in findings))]


INSIDE: list[str] = []


@contextmanager
def _surroundings() -> Iterator[None]:
    INSIDE.append("in")
    try:
        yield
    finally:
        INSIDE.append("out")


def _run(parameters: Values, seed: int) -> tuple[Values, Values]:
    INSIDE.append(str(parameters["policy"]))
    return {"wrong": 0}, {"throughput_per_s": 1.0}


def _run_or_fail(parameters: Values, seed: int) -> tuple[Values, Values]:
    if parameters["policy"] == TIDE:
        raise RuntimeError("no executor")
    return _run(parameters, seed)


def _interrupted(parameters: Values, seed: int) -> tuple[Values, Values]:
    raise KeyboardInterrupt


def _study(name: str, run: Callable[[Values, int], Any], *, live: bool) -> Study:
    one = Experiment(name="one", runs=_runs, run=run, sections=_sections)
    two = Experiment(name="two", runs=_runs, run=_run, sections=_sections)
    surroundings = _surroundings if live else None
    return Study(name=name, title=name, reference="r", introduction="i", experiments=(one, two), surroundings=surroundings)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Values, int], Any]], None]:
    """A made-up paper with live runs, which are done by a function that the test gives."""
    INSIDE.clear()

    def register(run: Callable[[Values, int], Any]) -> None:
        for name, study in (("paper", _study("paper", _run, live=False)), ("paper_live", _study("paper-live", run, live=True))):
            module = ModuleType(f"springtide.experiments.{name}")
            module.STUDY = study  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(registry, "PAPERS", ("paper",))
        monkeypatch.setattr(registry, "LIVE", {"paper": "paper-live"})

    return register


def test_live_runs_follow_on_the_simulated_ones_in_turn_inside_their_surroundings(
    registered: Callable[..., None], springtide: Springtide, tmp_path: Path
) -> None:
    registered(_run)
    ran = springtide("reproduce", "all", "--live", "--workers", "1", "--json", "--out", "o")

    assert ran.code == 0, ran.err
    assert list(json.loads(ran.out)) == ["paper", "paper-live"]
    both = [STATIC, TIDE, STATIC, TIDE]
    assert [*both, "in", *both, "out"] == INSIDE
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "paper.md",
        "paper.jsonl",
        "paper-live.md",
        "paper-live.jsonl",
    }

    INSIDE.clear()
    alone = springtide("reproduce", "paper-live", "--json", "--out", "o")
    assert list(json.loads(alone.out)) == ["paper-live"]
    assert ["in", *both, "out"] == INSIDE


def test_a_live_run_that_fails_is_one_line_and_the_others_have_their_page(
    registered: Callable[..., None], springtide: Springtide, tmp_path: Path
) -> None:
    registered(_run_or_fail)
    ran = springtide("reproduce", "paper", "--live", "--workers", "1", "--out", "o")

    assert ran.code == 1
    assert [line for line in ran.err.splitlines() if "failed" in line] == [
        f"springtide: paper-live one: policy={TIDE} failed: RuntimeError: no executor"
    ]
    text = (tmp_path / "o" / "paper-live.md").read_text()
    assert "one: a run has failed" in text
    assert f"{STATIC}, {TIDE}" in text  # experiment two


def test_an_interrupt_leaves_the_simulated_pages_and_nothing_else(
    registered: Callable[..., None], springtide: Springtide, tmp_path: Path
) -> None:
    registered(_interrupted)
    ran = springtide("reproduce", "paper", "--live", "--workers", "1", "--out", "o")

    assert ran.code == 130
    assert INSIDE[-2:] == ["in", "out"]
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"paper.md", "paper.jsonl"}


# --- really live -----------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.spark
def test_one_run_on_real_spark_counts_every_row_right(monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    """In the session of all tests, whose executors have one slot each."""
    assert spark.sparkContext.defaultParallelism > 0
    monkeypatch.setattr(world, "HOSTS", world.SLOTS)
    monkeypatch.setattr(world, "CORES", 1)
    parameters = {"policy": ELASTIC, "shuffles_per_minute": 4, "counted_s": 15.0}
    outcome = attempt(Run(paper=STUDY.name, experiment="shuffles", parameters=parameters))

    assert isinstance(outcome, Finding), outcome
    assert outcome.found["wrong"] == 0
    assert "all as they must be" in outcome.measured["checked"]
    assert 0 < outcome.measured["throughput_per_s"] <= 2 * world.rows_per_s()
    assert outcome.measured["latency_ms"] > 0
    assert len(outcome.measured["processed_per_s"]) >= 5
    assert outcome.measured["batches"] >= 1
