"""Figures 8 and 9: how long a shard stands still when it is reassigned, split into synchronisation and state migration.

Rules. Nothing is computed from what a move is set to cost: every time here is seen from outside, in a simulated run with steps
of 0.1 ms, as the time from the request until rows of the shard are served again (`standstill_s`). The synchronisation is what
that takes with empty state, the migration is what the state adds to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from springtide.backends.simulator.backend import SimulatorBackend
from springtide.backends.simulator.settings import Moves, SimulatorSettings
from springtide.errors import InvalidValue
from springtide.execute.diff import actions
from springtide.experiments.elasticutor import paper, world
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.backpressure import BackpressureBackend
from springtide.experiments.elasticutor.world import ELASTIC, RESOURCE_CENTRIC, TIDE
from springtide.experiments.study import Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import Allocation, OperatorAllocation
from springtide.model.application import Application, Edge, Grouping, KeyDistribution, Operator, Source
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import FloatArray, Observation

APPROACHES = (ELASTIC, RESOURCE_CENTRIC)
UPSTREAM_COUNTS = (1, 4, 16, 64, 256)
STATE_SIZES = tuple(32 * single.KB * 4**power for power in range(6))  # 32 KB to 32 MB
WAYS = ("intra-node", "inter-node")

STEP_S = 1e-4
_LONG_STEP_S = 1e-2
_LONGEST_S = 10.0  # no single reassignment here takes longer
_ROWS_PER_S = 10.0  # of each shard: few, so that nothing waits but for the reassignment

_SHUFFLE_S = 60.0 / paper.DEFAULT_SHUFFLES

_UPSTREAM, _CALCULATOR = "generator", "calculator"


# --- how long moved shards stand still ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """Shards of one operator change their replicas: from where to where, and in which world.

    The first `moved` shards are the ones that are looked at; the others only have to be somewhere.
    """

    before: OperatorAllocation
    after: OperatorAllocation
    moved: int
    moves: Moves
    upstream: int = single.UPSTREAM
    state_bytes: int = paper.STATE_BYTES_PER_SHARD

    def is_intra(self) -> list[bool]:
        """Of each moved shard: whether it stays on its host."""
        return [self.before.shard_host(shard) == self.after.shard_host(shard) for shard in range(self.moved)]


def standstill_s(reassignment: Reassignment) -> FloatArray:
    """Of each moved shard: the time from the request until its rows are served again, exact to half a step.

    A first look in long steps tells from when on to look in short ones: to observe every step of a long pause takes long.
    """
    roughly_s = _watched(reassignment, _LONG_STEP_S, from_s=0.0)
    return _watched(reassignment, STEP_S, from_s=max(0.0, float(roughly_s.min()) - 2 * _LONG_STEP_S))


def _watched(reassignment: Reassignment, step_s: float, from_s: float) -> FloatArray:
    """The same, seen step by step; nothing may be served before `from_s` after the request."""
    backend, start = _running(reassignment, step_s)
    backend.clock.advance_to(step_s)
    backend.observe()
    backend.apply(actions(start, start.with_operator(_CALCULATOR, reassignment.after)))
    stood = np.full(reassignment.moved, np.nan)
    for step in range(round(from_s / step_s), round(_LONGEST_S / step_s) - 1):
        backend.clock.advance_to((step + 2) * step_s)
        busy_s = backend.observe().operators[_CALCULATOR].shards.busy_s[: reassignment.moved]
        stood[np.isnan(stood) & (busy_s > 0)] = step * step_s
        if not np.isnan(stood).any():
            return stood
    raise InvalidValue(f"after {_LONGEST_S:g} s not all {reassignment.moved} shards that were moved are served again")


def split_s(reassignment: Reassignment) -> tuple[FloatArray, FloatArray]:
    """Of each moved shard: synchronisation and migration."""
    synchronisation = standstill_s(replace(reassignment, state_bytes=0))
    if not reassignment.state_bytes:
        return synchronisation, np.zeros(reassignment.moved)
    return synchronisation, standstill_s(reassignment) - synchronisation


def _running(of: Reassignment, step_s: float) -> tuple[SimulatorBackend, Allocation]:
    shards = len(of.before.shard_replicas)
    application = Application(
        name="reassignment",
        sources=(Source(name="source"),),
        edges=(Edge(upstream="source", downstream=_UPSTREAM), Edge(upstream=_UPSTREAM, downstream=_CALCULATOR)),
        operators=(
            Operator(name=_UPSTREAM, service_time_s=1e-6, grouping=Grouping.SHUFFLE, max_replicas=of.upstream),
            Operator(
                name=_CALCULATOR,
                service_time_s=paper.SERVICE_TIME_S,
                shards=shards,
                max_replicas=max(of.before.replicas, of.after.replicas),
                state_bytes_per_shard=of.state_bytes,
                keys=KeyDistribution(keys=100 * shards),  # so many that every shard has some, and so rows in every step
            ),
        ),
    )
    hosts = tuple(dict.fromkeys((*of.before.replica_hosts, *of.after.replica_hosts)))
    upstream = OperatorAllocation(tuple(hosts[i % len(hosts)] for i in range(of.upstream)))
    start = Allocation(hosts, {_UPSTREAM: upstream, _CALCULATOR: of.before})
    settings = SimulatorSettings(step_s=step_s, interval_s=step_s, moves=of.moves, network_delay_s=0.0)
    rows = np.full((1, round(_LONGEST_S / step_s)), _ROWS_PER_S * shards * step_s)
    return SimulatorBackend(application, world.cluster(len(hosts)), settings, rows, start=start), start


# --- Figure 8: what the policies reassign after a key shuffle --------------------------------------------------------


@dataclass(slots=True)
class _Decisions:
    """A recorder of every change of the calculator since the first shuffle, and of the rows processed meanwhile."""

    changes: list[tuple[OperatorAllocation, OperatorAllocation]] = field(default_factory=list)
    processed: float = 0.0

    def observation(self, observation: Observation) -> None:
        if observation.start_s >= _SHUFFLE_S:
            self.processed += observation.operators[_CALCULATOR].processed_rows

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        if actions and observation.end_s >= _SHUFFLE_S:
            before, after = observation.requested.operators[_CALCULATOR], decision.planned.operators[_CALCULATOR]
            self.changes.append((before, after))

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of a promise is not asked here."""


def reassignments(approach: str, seed: int) -> tuple[list[Reassignment], float]:
    """What a policy changes in the time from one key shuffle to the next, and the rows per second meanwhile: as in Figure 7."""
    application, pool = world.micro_benchmark(world.Workload()), world.cluster()
    policy = world.made_policy(approach, application, paper.EXECUTORS)
    backend = BackpressureBackend(
        application,
        pool,
        world.settings(approach),
        world.generator(application, pool, world.ALL_CORES, 2 * _SHUFFLE_S),
        world.limits(approach, paper.EXECUTORS),
        seed=seed,
        start=world.start(approach, application, pool, paper.EXECUTORS),
    )
    decided = _Decisions()
    with forecast_for(policy, world.INTERVAL_S) as forecast:
        loop = ControlLoop(application=application, pool=pool, policy=policy, interval_s=world.INTERVAL_S, forecast=forecast)
        loop.run(backend, decided, backend.duration_s)
    found = [_only_moved(before, after, single.MOVES[approach]) for before, after in decided.changes]
    return [one for one in found if one.moved], decided.processed / _SHUFFLE_S


def _only_moved(before: OperatorAllocation, after: OperatorAllocation, moves: Moves) -> Reassignment:
    """The same change of an operator with no more shards than it takes to see it."""
    routes = list(zip(before.shard_replicas, after.shard_replicas, strict=True))
    places = [(r, before.replica_hosts[r], n, after.replica_hosts[n]) for r, n in routes]
    moved = [shard for shard, (r, old, n, new) in enumerate(places) if (r, old) != (n, new)]
    stay = [shard for shard, (r, old, n, new) in enumerate(places) if (r, old) == (n, new)]
    chosen = moved + stay[: max(0, max(before.replicas, after.replicas) - len(moved))]  # a shard per replica at least
    return Reassignment(
        before=OperatorAllocation(before.replica_hosts, tuple(routes[shard][0] for shard in chosen)),
        after=OperatorAllocation(after.replica_hosts, tuple(routes[shard][1] for shard in chosen)),
        moved=len(moved),
        moves=moves,
    )


# --- the runs -------------------------------------------------------------------------------------------------------


def runs(quick: bool) -> list[tuple[Values, int]]:
    """All of them are short: the quick variant has fewer points, and one key shuffle instead of three."""
    upstream = UPSTREAM_COUNTS[::2] if quick else UPSTREAM_COUNTS
    sizes = (STATE_SIZES[0], STATE_SIZES[-1]) if quick else STATE_SIZES
    found: list[tuple[Values, int]] = [
        ({"figure": "8", "approach": approach}, seed) for approach in (*APPROACHES, TIDE) for seed in range(1 if quick else 3)
    ]
    found += [({"figure": "9a", "approach": approach, "upstream": n}, 0) for approach in APPROACHES for n in upstream]
    found += [
        ({"figure": "9b", "approach": approach, "way": way, "state_bytes": size}, 0)
        for approach in APPROACHES
        for way in WAYS
        for size in sizes
    ]
    return found


def run(parameters: Values, seed: int) -> Values:
    if parameters["figure"] == "8":
        return _after_a_shuffle(parameters["approach"], seed)
    upstream = parameters.get("upstream", single.UPSTREAM)
    size = parameters.get("state_bytes", paper.STATE_BYTES_PER_SHARD)
    one = one_shard(parameters["approach"], parameters.get("way", WAYS[1]), upstream=upstream, state_bytes=size)
    synchronisation, migration = split_s(one)
    return {"synchronisation_s": _rounded(synchronisation[0]), "migration_s": _rounded(migration[0])}


def one_shard(approach: str, way: str, *, upstream: int, state_bytes: int) -> Reassignment:
    """A single shard that changes its replica, within a node or to another one."""
    hosts = ("host-0", "host-0", "host-1")
    return Reassignment(
        before=OperatorAllocation(hosts, (0, 1, 2)),
        after=OperatorAllocation(hosts, (1 if way == "intra-node" else 2, 1, 2)),
        moved=1,
        moves=single.MOVES[approach],
        upstream=upstream,
        state_bytes=state_bytes,
    )


def _after_a_shuffle(approach: str, seed: int) -> Values:
    found, rows_per_s = reassignments(approach, seed)
    intra = np.array([is_intra for one in found for is_intra in one.is_intra()], dtype=np.bool_)
    times = [split_s(one) for one in found]
    synchronisation = np.concatenate([np.zeros(0), *(of[0] for of in times)])
    migration = np.concatenate([np.zeros(0), *(of[1] for of in times)])
    ways = {
        way: {
            "shards": int(chosen.sum()),
            "synchronisation_s": _mean(synchronisation[chosen]),
            "migration_s": _mean(migration[chosen]),
        }
        for way, chosen in zip(WAYS, (intra, ~intra), strict=True)
    }
    return {
        "ways": ways,
        "decisions": len(found),
        "standstill_s": _rounded(float((synchronisation + migration).sum())),
        "rows_per_s": round(rows_per_s, 3),
    }


def _mean(values: FloatArray) -> float:
    return _rounded(float(values.mean())) if len(values) else 0.0


def _rounded(value: float) -> float:
    return round(float(value), 6)
