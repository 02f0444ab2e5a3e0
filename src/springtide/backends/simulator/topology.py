"""An application as arrays, and how its keys fall on shards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from springtide.backends.simulator import arrays
from springtide.backends.simulator.arrays import Floats, Ints, Records, Simulation
from springtide.backends.simulator.settings import Arrivals, ServiceModel, ServiceTimes, SimulatorSettings
from springtide.model.application import Application, Grouping, KeyDistribution, Operator
from springtide.monitor.latency_histogram import BINS

GROUPINGS = {
    Grouping.SHUFFLE: arrays.SHUFFLE,
    Grouping.KEY: arrays.KEY,
    Grouping.LOAD_BALANCED: arrays.LOAD_BALANCED,
    Grouping.SHARED: arrays.SHARED,
}

FIRST_RECORDS, FIRST_ENTRIES, FIRST_EMITTED = 32, 64, 256


def new_simulation(application: Application, settings: SimulatorSettings, steps: int, host_slots: int) -> Simulation:
    """The state before the first step: nothing placed, nothing waiting."""
    operators = _new_operators(application, settings)
    operators["beyond_step_s"] = [_service_beyond_step_s(o, application, settings) for o in application.operators]
    edges = _new_edges(application)
    lanes = np.zeros(int(operators["lane_after"][-1]), arrays.LANE)
    lanes["replica"] = np.repeat(operators["replica_first"], operators["lane_after"] - operators["lane_first"])
    replicas = np.zeros(int(operators["replica_after"][-1]), arrays.REPLICA)
    replicas["host"] = -1
    hosts = np.zeros(host_slots, arrays.HOST)
    levels = int(operators["level_after"][-1])
    return Simulation(
        operators=operators,
        edges=edges,
        lanes=lanes,
        replicas=replicas,
        hosts=hosts,
        records=np.zeros((len(operators), FIRST_RECORDS), arrays.RECORD),
        entries=np.zeros((len(operators), FIRST_ENTRIES), arrays.ENTRY),
        emitted=np.zeros(FIRST_EMITTED, arrays.ENTRY),
        slots=arrays.new_slots(steps),
        share=np.zeros((len(lanes), 1)),
        levels=np.zeros(levels),
        level_share=np.zeros((levels, FIRST_RECORDS)),
        bytes_per_row=np.zeros((len(operators), host_slots)),
        latency_rows=np.zeros(BINS),
        totals=np.zeros(1, arrays.TOTALS),
        world=_new_world(application, settings),
        batches=np.zeros(len(operators), arrays.BATCHES),
    )


def lanes_of(operator: Operator) -> int:
    if operator.keyed:
        return operator.shards
    return 1 if operator.grouping is Grouping.SHARED else operator.replica_limit


def _new_operators(application: Application, settings: SimulatorSettings) -> Records:
    described = application.operators
    operators = np.zeros(len(described), arrays.OPERATOR)
    lengths = {
        "edge": [len(application.inputs(o.name)) for o in described],
        "lane": [lanes_of(o) for o in described],
        "replica": [o.replica_limit for o in described],
        "level": [lanes_of(o) if o.grouping is Grouping.LOAD_BALANCED else 0 for o in described],
    }
    for what, counts in lengths.items():
        after = np.cumsum(counts)
        operators[f"{what}_first"] = after - counts
        operators[f"{what}_after"] = after
    operators["grouping"] = [GROUPINGS[o.grouping] for o in described]
    operators["sink"] = [not application.outputs(o.name) for o in described]
    operators["service_s"] = [o.service_time_s for o in described]
    operators["queue_rows"] = [o.queue_rows for o in described]
    operators["batch_trigger_s"] = settings.micro_batch.trigger_s
    operators["batch_max_rows"] = settings.micro_batch.max_rows
    return operators


def _service_beyond_step_s(operator: Operator, application: Application, settings: SimulatorSettings) -> float:
    """The part of a row's own service time that the kernel's curves of rows in and rows out do not show.

    With steps much longer than the service, rows leave in the step they came in and all of it is missing; so it is
    where rows flow in evenly, because they flow out the same way. Where whole rows come and steps are much shorter than
    the service, a row leaves bit by bit while it is served, on average half a service time before its end (constant
    service), or whole at its end (exponential service).
    """
    service_s = operator.service_time_s
    seen = service_s / (service_s + settings.step_s)
    if settings.service_times is ServiceTimes.EXPONENTIAL:
        return service_s * (1.0 - seen)
    operators = {o.name for o in application.operators}
    whole_rows = settings.arrivals is Arrivals.POISSON and all(
        e.upstream not in operators for e in application.inputs(operator.name)
    )
    return service_s * (1.0 - 0.5 * seen) if whole_rows else service_s


def _new_edges(application: Application) -> Records:
    index = {o.name: i for i, o in enumerate(application.operators)}
    index |= {s.name: -1 - i for i, s in enumerate(application.sources)}
    described = [e for o in application.operators for e in application.inputs(o.name)]
    edges = np.zeros(len(described), arrays.EDGE)
    edges["upstream"] = [index[e.upstream] for e in described]
    edges["selectivity"] = [e.selectivity for e in described]
    return edges


def _new_world(application: Application, settings: SimulatorSettings) -> Records:
    world = np.zeros(1, arrays.WORLD)
    world["step_s"] = settings.step_s
    world["interval_s"] = settings.interval_s
    world["timeout_s"] = application.timeout_s
    world["slo_s"] = application.slo.latency_s
    world["exponential"] = settings.service_times is ServiceTimes.EXPONENTIAL
    world["micro_batch"] = settings.service is ServiceModel.MICRO_BATCH
    world["batch_fixed_s"] = settings.micro_batch.fixed_s
    world["batch_task_s"] = settings.micro_batch.task_overhead_s
    world["batch_shard_s"] = settings.micro_batch.shard_overhead_s
    return world


class KeySpace:
    """One operator's keys: which shard each belongs to (for ever), and how often each occurs (until the next shuffle)."""

    def __init__(self, distribution: KeyDistribution, shards: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._shards = shards
        self._shard_of_key = (_hash(np.arange(distribution.keys)) % np.uint64(shards)).astype(np.int64)
        frequencies = np.arange(1, distribution.keys + 1, dtype=np.float64) ** -distribution.zipf
        self._frequencies = rng.permutation(frequencies / frequencies.sum())

    def shares(self) -> Floats:
        """The part of all rows that each shard receives."""
        shares = np.bincount(self._shard_of_key, weights=self._frequencies, minlength=self._shards)
        return np.asarray(shares / shares.sum(), np.float64)

    def shuffle(self) -> None:
        """Elasticutor's key shuffle: the same frequencies, on other keys."""
        self._frequencies = self._rng.permutation(self._frequencies)


def _hash(keys: Ints) -> NDArray[np.uint64]:
    # The finaliser of SplitMix64: any good hash does, but it must be the same in every run and version.
    x = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
