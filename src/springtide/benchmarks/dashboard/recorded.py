"""The run that is looked at: a simulated one under `tide`, whose journal has the load of every shard, as a live one's has."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from springtide.applications.simulated.pipeline import pipeline
from springtide.backends.simulator.settings import SimulatorSettings
from springtide.journal.writing import JournalWriter
from springtide.model.allocation import Pool
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.generators import day_cycle

POLICY = "tide"
INTERVAL_S = 30.0
_STEP_S = 10.0
_SEED = 7


def simulation(days: float) -> Simulation:
    """Days that rise and fall, for three operators with 64 shards between them."""
    trace = day_cycle(_SEED, days=days, step_s=_STEP_S)
    return Simulation(
        trace=trace,
        application=pipeline(trace.peak_rate_over(60.0)),
        pool=Pool(),
        settings=SimulatorSettings(interval_s=INTERVAL_S, step_s=_STEP_S),
        policy=make_policy(POLICY, {}),
        policy_name=POLICY,
    )


def opened_journal(path: Path, simulated: Simulation, *, live: bool) -> JournalWriter:
    """A journal as detailed as that of a live run; the dashboard follows one that says it is `live`."""
    record = msgspec.structs.replace(simulated.record(datetime.now(UTC)), live=live)
    return JournalWriter(path, record, detail="shards")


def write_journal(path: Path, days: float) -> Path:
    """The journal of a run that has ended."""
    simulated = simulation(days)
    with opened_journal(path, simulated, live=False) as journal:
        summary, _ = simulated.run([journal])
        journal.end(summary.duration_s, dataclasses.asdict(summary))
    return path
