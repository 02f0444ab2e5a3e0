"""One configuration, run: from its parameters to the four metrics and the curves of the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from springtide.experiments.psps import world
from springtide.experiments.psps.measuring import Intervals, curves, metrics, rows_delivered_per_source_row
from springtide.experiments.psps.streams import origin, rates
from springtide.simulation import Simulation

STRETCHES = 4  # of a stream, in the full variant

_FIRST_S = 30.0  # the rate that a run is sized for when it begins


def run(parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    setting = world.Setting(**parameters)
    trace = rates(setting.stream, setting.stretch)
    application = world.application(setting)
    simulation = Simulation(
        trace=trace,
        application=application,
        pool=world.pool(setting),
        settings=world.settings(setting),
        policy=world.policy(setting),
        policy_name=setting.policy,
        seed=seed,
        start=world.start(setting, application, trace.cut(0.0, _FIRST_S).mean_rate_per_s),
    )
    seen = Intervals(rows_delivered_per_source_row(application))
    summary, _ = simulation.run([seen])
    return {
        "origin": origin(setting.stream, setting.stretch),
        "mean_to_peak": trace.mean_rate_per_s / trace.peak_rate_per_s,
        "dropped_rows": summary.rows.dropped,
        **metrics(seen.kept, summary.latency, setting.plan.over_provisioned),
        "curves": curves(seen.kept),
    }
