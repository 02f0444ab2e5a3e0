"""The dashboard's figures are the run's own: its cost, its peak, and what the oracle pays for the same trace."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from journals import line

import factories
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.dashboard.cheapest import came, cheapest
from springtide.dashboard.following import FollowedJournal
from springtide.dashboard.series import series
from springtide.journal.writing import JournalWriter
from springtide.model.allocation import HostType, Pool
from springtide.model.application import Grouping
from springtide.plan.registry import make_policy
from springtide.report.summary import RunSummary
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

APP = factories.application(
    factories.operator("parse", grouping=Grouping.SHUFFLE, max_replicas=16), factories.operator("count", shards=32)
)
POOL = Pool(host=HostType(cores=4), max_hosts=8)


def simulated(policy: str, path: Path) -> tuple[RunSummary, FollowedJournal]:
    """An hour: calm, a jump, calm again."""
    rows = np.concatenate([np.full(900, 500.0), np.full(900, 6000.0), np.full(1800, 500.0)])
    simulation = Simulation(
        trace=Trace(name="jump", step_s=1.0, counts=rows),
        application=APP,
        pool=POOL,
        settings=SimulatorSettings(interval_s=30.0),
        policy=make_policy(policy, {}),
        policy_name=policy,
    )
    with JournalWriter(path, factories.run(APP, interval_s=30.0)) as journal:
        summary, _ = simulation.run([journal])
    first, rest = path.read_bytes().split(b"\n", 1)
    host = POOL.host
    pool = {"min_hosts": 1, "max_hosts": 8, "cores": host.cores, "start_s": host.start_s, "release_s": host.release_s}
    path.write_bytes(line({**msgspec.json.decode(first), "pool": pool}) + rest)
    followed = FollowedJournal(path)
    followed.read_all()
    return summary, followed


@pytest.mark.parametrize("policy", ["oracle", "local-thresholds"])
def test_cost_and_peak_are_what_the_run_says_at_its_end(tmp_path: Path, policy: str) -> None:
    summary, journal = simulated(policy, tmp_path / "run.jsonl")
    found = series(journal.index, None, points=20)
    assert found["core_h"][-1] == pytest.approx(summary.core_hours)
    assert found["static_core_h"][-1] == pytest.approx(summary.peak_core_hours)
    assert journal.index.totals.changes == summary.decisions_with_change
    assert journal.index.totals.vetoes == summary.vetoes
    assert {k: n for k, n in journal.index.totals.reconfigurations.items() if n} == {
        kind: count for kind, count in summary.reconfigurations.items() if count
    }


def test_the_oracle_behind_any_run_pays_what_the_oracle_pays_in_its_own(tmp_path: Path) -> None:
    paid, own = simulated("oracle", tmp_path / "oracle.jsonl")
    _, other = simulated("local-thresholds", tmp_path / "other.jsonl")
    for journal in (own, other):
        what_came = came(journal.index)
        assert what_came is not None
        assert cheapest(what_came).core_h[-1] == pytest.approx(paid.core_hours, rel=0.05)


def test_what_came_is_within_capacity_once_hosts_are_there(tmp_path: Path) -> None:
    summary, journal = simulated("oracle", tmp_path / "run.jsonl")
    rows = journal.index.rows
    enough = rows["capacity_per_s"] >= rows["offered_per_s"]
    assert summary.slo_kept
    assert enough.mean() > 0.97
