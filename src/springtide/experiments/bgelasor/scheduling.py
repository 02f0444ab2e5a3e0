"""Figures 4 and 5: what instances cost, how often their number changes, and how long rows take, for each algorithm.

Every algorithm has the same test days of a load, the same first number of instances, and, if it looks ahead, the same forecast.
The number of instances in an epoch is what was in force in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from springtide.experiments.bgelasor import world
from springtide.experiments.bgelasor.learning import can_learn, kept_for_run, learnt, said_ahead
from springtide.experiments.bgelasor.loads import Load, load_named
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import Models
from springtide.model.application import Application
from springtide.model.observation import FloatArray
from springtide.model.protocols import AnyPolicy
from springtide.plan.cost.model import least_instances, transition_cost
from springtide.plan.policies.cost_balance import CostBalance
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.traces import Trace

# What the paper calls each policy.
ALGORITHMS: Mapping[str, str] = {"SREA": "reactive", "SPEA": "proactive", "CBA": "cost-balance"}
SPEND = 0.5  # of the rows that the objective allows to be late: tide may use them up, as the paper keeps no reserve either
TIDE, OPTIMUM, RESERVED = "tide", "optimum", "CBA with headroom"
PREDICTOR = "bigru"

_QUICK_DAYS = {"periodic": 2, "fluctuating": 5}  # a spike comes on the fifth
_FULL_DAYS = 7  # a model is not listened to when it is older
_SHOWN, _SHOWN_BEFORE = 48, 12  # epochs of the pictures, and how many of them before the steepest rise
_LASTING = 6  # epochs
_FINEST, _LARGEST = 1.04, 31  # headroom is a power of the one, up to so many
_ALIKE = 0.001  # shares of late rows that differ by no more: single epochs decide beyond that


def knowing(algorithm: str) -> str:
    return f"{algorithm}, rates known"


def waiting(algorithm: str) -> str:
    return f"{algorithm}, all rows wait"


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [({"load": load, "days": days if quick else _FULL_DAYS}, 0) for load, days in _QUICK_DAYS.items()]


def run(parameters: Values, seed: int) -> Values:
    load = load_named(parameters["load"]).with_mean(world.MEAN_ROWS_PER_S)
    trace = world.tested(load, parameters["days"])
    least = world.needs(trace)
    with _learnt(load, trace.steps, seed) as (models, ahead):
        scene = _Scene(load=load, trace=trace, models=models, ahead_rows_per_s=ahead)
        algorithms = dict(_compared(scene))
        factor, reserved = _with_headroom(scene, algorithms[TIDE]["late_share"])
    shown = scene.shown
    return {
        "origin": load.origin,
        "interval_s": load.interval_s,
        "epochs": trace.steps,
        "forecast": PREDICTOR if models else "",
        "mean_need": sum(least) / len(least),
        "most_needed": max(least),
        "headroom": factor,
        "first_shown": shown.start,
        "rows_per_s": [round(rows / trace.step_s) for rows in trace.counts[shown].tolist()],
        "algorithms": algorithms | {RESERVED: reserved},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What all algorithms have in common.

    `models` and `ahead_rows_per_s` are of one network: for `tide`, which listens to it as long as it errs less than simple
    models do, and what it says by itself, as the paper's algorithms have it.
    """

    load: Load
    trace: Trace
    models: Models | None = None
    ahead_rows_per_s: FloatArray | None = None

    def of_paper(self, algorithm: str, *, headroom: float = 1.0, waiting: bool = False) -> AnyPolicy:
        policy = make_policy(ALGORITHMS[algorithm], {})
        return world.Shown(policy=policy, ahead_rows_per_s=self.ahead_rows_per_s, headroom=headroom, waiting=waiting)

    @property
    def shown(self) -> slice:
        """The epochs around the steepest rise that lasts: of the mean over some epochs, above that over as many before."""
        total = np.concatenate(([0], np.cumsum(world.needs(self.trace))))
        sums = total[_LASTING:] - total[:-_LASTING]
        rise = int(np.argmax(sums[_LASTING:] - sums[:-_LASTING])) + _LASTING
        first = max(0, min(rise - _SHOWN_BEFORE, self.trace.steps - _SHOWN))
        return slice(first, first + _SHOWN)

    def told(self, policy: AnyPolicy, application: Application = world.DISCARDING, *, rents: bool = False) -> dict[str, Any]:
        """What a run comes to: cost, changes and latency."""
        pool = world.RENTED_CORES if rents else world.CLUSTER
        summary, points = Simulation(
            trace=self.trace,
            application=application,
            pool=pool,
            settings=world.settings(self.load),
            policy=policy,
            policy_name=type(policy).__name__,
            start=world.first_allocation(pool, world.needs(self.trace)[0]),
            models=self.models if rents else None,
        ).run()
        instances = [point.hosts if rents else point.replicas for point in points]
        return {
            **_costs(instances),
            **(self.kept(instances) if isinstance(policy, world.Shown) else {}),
            "short_epochs": sum(n < least for n, least in zip(instances, world.needs(self.trace), strict=True)),
            "latency_mean_s": summary.latency.mean_s,
            "latency_p50_s": summary.latency.p50_s,
            "latency_p90_s": summary.latency.p90_s,
            "latency_p99_s": summary.latency.p99_s,
            "late_share": summary.slo_violation_share,
            "discarded_share": summary.rows.dropped / summary.rows.source,
            "shown_instances": instances[self.shown],
            "shown_latency_s": [round(point.latency_p90_s, 4) for point in points[self.shown]],
        }

    def kept(self, instances: list[int]) -> dict[str, int]:
        """How many instances there were beyond what CBA's first step, which is SPEA, would have had, over all epochs; and how
        many of these were needed in their epoch or in the next one."""
        if self.ahead_rows_per_s is None:
            return {}
        least = np.array(world.needs(self.trace))
        said = [least_instances(rate, world.CAPABILITY_ROWS_PER_S) for rate in self.ahead_rows_per_s[:-2, 0].tolist()]
        simple = np.maximum(least[:-2], said)
        kept = np.maximum(0, np.array(instances[1:-1]) - simple)
        needed = np.clip(np.maximum(least[1:-1], least[2:]) - simple, 0, kept)
        return {"kept": int(kept.sum()), "kept_and_needed": int(needed.sum())}


def _costs(instances: list[int]) -> dict[str, Any]:
    prices = world.PRICES
    running = prices.instance * sum(instances)
    changing = sum(transition_cost(before, after, prices) for before, after in pairwise(instances))  # Eq. (5)
    changes = np.diff(np.array(instances))
    return {
        "cost": running + changing,
        "running_cost": running,
        "changing_cost": changing,
        "changes": int(np.count_nonzero(changes)),
        "instances_changed": int(np.abs(changes).sum()),
        "mean_instances": sum(instances) / len(instances),
    }


def _compared(scene: _Scene) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ALGORITHMS:
        yield name, scene.told(scene.of_paper(name))
    yield TIDE, scene.told(make_policy(TIDE, {"spend": SPEND}), rents=True)
    yield OPTIMUM, scene.told(world.Timetable(numbers=world.optimum(world.needs(scene.trace))))
    for name in ("SPEA", "CBA"):
        yield knowing(name), scene.told(world.Told(policy=make_policy(ALGORITHMS[name], {})))
    for name in ALGORITHMS:
        yield waiting(name), scene.told(scene.of_paper(name, waiting=True), world.WAITING)


def _with_headroom(scene: _Scene, late_share: float) -> tuple[float, dict[str, Any]]:
    """CBA with the least headroom with which about as few rows are late, found by halving; with the most, if none does."""
    low, high = 0, _LARGEST + 1
    found: dict[int, dict[str, Any]] = {}
    while high - low > 1:
        power = (low + high) // 2
        found[power] = scene.told(scene.of_paper("CBA", headroom=_FINEST**power))
        low, high = (low, power) if found[power]["late_share"] <= late_share + _ALIKE else (power, high)
    power = min(high, _LARGEST)
    return _FINEST**power, found[power]


@contextmanager
def _learnt(load: Load, epochs: int, seed: int) -> Iterator[tuple[Models | None, FloatArray | None]]:
    """The paper's predictor for `tide`, and what it says by itself after each epoch; none without JAX."""
    if not can_learn(PREDICTOR):
        yield None, None
        return
    model = learnt(load, PREDICTOR, seed)
    ahead = said_ahead(load, model, epochs, CostBalance().horizon)
    with tempfile.TemporaryDirectory(prefix="springtide-") as folder:
        yield kept_for_run(load, model, Path(folder), world.SOURCE), ahead
