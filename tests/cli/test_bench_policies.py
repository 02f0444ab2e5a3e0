"""`springtide bench policies`: figures of a quick run, their bars, and the world in which decisions are taken."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from springtide.benchmarks.policies import measuring
from springtide.benchmarks.policies.measuring import Report, measure, table
from springtide.benchmarks.policies.running import Case, Result, run_case
from springtide.benchmarks.policies.world import Drift, Size, World
from springtide.cli.bench import app
from springtide.errors import SpringtideError
from springtide.plan.registry import policies

SMALL = Size(hosts=3, operators=3, replicas=4, shards=12, cores=4)


def quiet(_: str) -> None: ...


def rendered(report: Report) -> str:
    console = Console(width=200)
    with console.capture() as printed:
        console.print(table(report))
    return printed.get()


def result(case: Case, median_ms: float) -> Result:
    met = None if case.bar_ms is None else 2 * median_ms <= case.bar_ms
    return Result(
        case=case,
        changing=0.5,
        hosts=32,
        replicas=384,
        mean_ms=median_ms,
        median_ms=median_ms,
        p95_ms=2 * median_ms,
        most_ms=3 * median_ms,
        met=met,
    )


def test_a_quick_run_has_the_figures_of_the_policies_asked_for() -> None:
    done = CliRunner().invoke(
        app, ["policies", "--quick", "--json", "--policy", "static", "--policy", "elastic-executors"], catch_exceptions=False
    )
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert [r["case"]["policy"] for r in report["results"]] == ["static", "elastic-executors"]
    static, elastic = report["results"]
    assert static["changing"] == 0.0
    assert elastic["changing"] > 0.5
    for r in report["results"]:
        assert r["case"]["size"] == {"hosts": 32, "operators": 12, "replicas": 32, "shards": 256, "cores": 8}
        assert 0 < r["median_ms"] <= r["p95_ms"] <= r["most_ms"]
        assert 10 < r["hosts"] < 64
        assert r["case"]["bar_ms"] == 5.0
        assert r["met"] == (r["p95_ms"] <= 5.0)
    assert report["within_bars"] == all(r["met"] for r in report["results"])


def test_every_registered_policy_is_measured_and_growth_is_relative_to_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if every decision took 1 us per host and shard.
    monkeypatch.setattr(
        measuring, "_in_own_process", lambda cases: [result(c, 1e-3 * c.size.hosts * c.size.shards / 256) for c in cases]
    )
    report = measure(say=quiet)
    assert {r.case.policy for r in report.results} == set(policies())
    assert {r.case.size.hosts for r in report.results if r.case.policy == "elastic-executors"} == {32, 50, 1000}
    assert {r.case.policy for r in report.results if r.case.name.endswith(", holding")} == set(policies())
    assert [(g.by, g.relative_cost) for g in report.growth if g.policy == "static"] == [
        ("hosts", pytest.approx([1.0, 1.0, 1.0])),
        ("shards", pytest.approx([1.0, 1.0, 1.0])),
    ]
    assert report.within_bars
    assert "8: 1.00, 32: 1.00, 128: 1.00" in rendered(report)


def test_a_missed_bar_fails_the_check_and_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_in_own_process", lambda cases: [result(c, 2.6) for c in cases])
    report = measure(["static"], quick=True, say=quiet)
    assert not report.within_bars
    assert "5 missed" in rendered(report)
    command = ["policies", "--quick", "--policy", "static"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CliRunner().invoke(app, [*command, "--check"]).exit_code == 1


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'static'"):
        measure(["statik"], say=quiet)


@pytest.mark.parametrize("name", policies())
def test_every_policy_can_be_timed(name: str) -> None:
    found = run_case(Case(name=name, policy=name, size=SMALL, decisions=6))
    assert 0 < found.median_ms <= found.most_ms
    assert found.met is None


@pytest.mark.parametrize("name", ["static", "local-thresholds", "tide"])
def test_a_load_that_does_not_change_is_held_after_a_few_decisions(name: str) -> None:
    case = Case(name=name, policy=name, size=SMALL, decisions=4, drift=measuring.STEADY, settling=measuring.SETTLED)
    found = run_case(case)
    assert found.changing == 0.0
    assert found.median_ms > 0


def test_the_world_is_the_same_for_the_same_seed_and_its_figures_fit_together() -> None:
    one, same, other = (World(SMALL, Drift(), seed) for seed in (1, 1, 2))
    for world in (one, same, other):
        world.advance()
    views = [world.view(world.start) for world in (one, same, other)]
    rows = [[o.offered_rows for o in seen.observation.operators.values()] for seen in views]
    assert rows[0] == rows[1] != rows[2]
    seen = views[0]
    for name, observed in seen.observation.operators.items():
        assert observed.offered_rows == pytest.approx(seen.demand_rows_per_s[name] * seen.observation.interval_s)
        assert observed.shards.rows.sum() == pytest.approx(observed.offered_rows)
        assert observed.backlog_rows == pytest.approx(observed.offered_rows - observed.processed_rows)
        assert observed.replica_utilisation.max() <= 1.0
    assert seen.forecast is not None
    assert all(len(rates) == 30 for rates in (*seen.forecast.mean.values(), *seen.forecast.upper.values()))
    assert seen.demand_at({"source": seen.observation.offered_rows / seen.observation.interval_s}) == pytest.approx(
        seen.demand_rows_per_s
    )


def test_loads_drift_around_their_mean() -> None:
    world = World(SMALL, Drift(), seed=4)
    busy = []
    for _ in range(200):
        world.advance()
        busy.append(sum(world.view(world.start).demand_rows_per_s.values()) * 0.001 / (SMALL.hosts * SMALL.cores))
    assert np.mean(busy) == pytest.approx(Drift().busy, rel=0.1)
    assert np.std(busy) > 0.02
    still = World(SMALL, replace(Drift(), step=0.0, jump_chance=0.0, shuffle_chance=0.0), seed=4)
    still.advance()
    assert set(still.factors.tolist()) == {1.0}
