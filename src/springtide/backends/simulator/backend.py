"""The simulator as a backend: virtual time, deterministic from a seed, the same protocol as live Spark.

Everything happens at the boundary of a step. What an action costs (a host's start, a restart, a shard's way over the
network) is a matter of `SimulatorSettings`; what it does to rows is the kernel's.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from springtide.backends.simulator.arrays import Floats
from springtide.backends.simulator.engine import Engine
from springtide.backends.simulator.hosts import Fleet, Network, SimulatedHost
from springtide.backends.simulator.intake import Intake, Queues
from springtide.backends.simulator.meter import Meter
from springtide.backends.simulator.settings import (
    Activation,
    Arrivals,
    Failure,
    RestartScope,
    ServiceModel,
    SimulatorSettings,
)
from springtide.backends.simulator.traffic import Traffic
from springtide.errors import require
from springtide.execute.carrying_out import carry_out_so_far, operator_after, require_operator
from springtide.model.action import Action, AddHosts, MoveShards, ReleaseHosts, SetReplicas, SetTriggerInterval
from springtide.model.allocation import Allocation, OperatorAllocation, Pool, new_host_names, spread
from springtide.model.application import Application, Grouping
from springtide.model.change import moved_units
from springtide.model.observation import HostObservation, HostState, Latency, Observation
from springtide.monitor.capacity import OperatorBatches, measure_host_utilisation
from springtide.monitor.interval import operator_observations
from springtide.monitor.latency_histogram import LatencyCounts, no_latency, summarise


class VirtualClock:
    """Time that passes only when somebody waits for it."""

    def __init__(self, run_to: Callable[[float], None]) -> None:
        self._run_to = run_to
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def advance_to(self, time_s: float) -> None:
        if time_s > self._now_s:
            self._run_to(time_s)
            self._now_s = time_s


class SimulatorBackend:
    """Runs `application` on simulated hosts, fed with `rows_per_step` (one row of the array per source).

    All of them come in as they are made, or what an `intake` lets in.
    """

    def __init__(  # noqa: PLR0913 - what is simulated, and what comes to it
        self,
        application: Application,
        pool: Pool,
        settings: SimulatorSettings,
        rows_per_step: Floats,
        *,
        seed: int = 0,
        start: Allocation | None = None,
        intake: Intake | None = None,
    ) -> None:
        require(
            rows_per_step.ndim == 2 and rows_per_step.shape[0] == len(application.sources),
            f"the simulator needs one row of counts per source: {len(application.sources)}, not {rows_per_step.shape[:1]}",
        )
        self._application, self._pool, self._settings = application, pool, settings
        self._index = {o.name: i for i, o in enumerate(application.operators)}
        self._reading = [
            (i, o.name)
            for i, o in enumerate(application.operators)
            if not any(e.upstream in self._index for e in application.inputs(o.name))
        ]
        self._load_balanced = [(i, o.name) for i, o in enumerate(application.operators) if o.grouping is Grouping.LOAD_BALANCED]
        self._meter = Meter(
            application,
            in_batches=settings.service is ServiceModel.MICRO_BATCH,
            least_trigger_s=settings.micro_batch.trigger_s,
        )
        self._rows = _draw(rows_per_step, settings.arrivals, np.random.default_rng([seed, 0]))
        self._let_in = self._rows if intake is None else np.zeros_like(self._rows)
        self._engine = Engine(application, settings, self._let_in, seed, pool.max_hosts)
        self._intake, self._queues = intake, Queues(self._engine)
        self._fleet = Fleet(pool.host)
        self._traffic = Traffic(self._engine, Network(settings, seed))
        self._clock = VirtualClock(self._run_to)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._pending: dict[str, OperatorAllocation] = {}
        self._releasing: set[str] = set()
        self._moved = True  # something has another place, or another share of the rows, since the traffic was worked out
        self._pauses: list[tuple[float, float]] = []
        self._done: Counter[str] = Counter()
        self._notes: list[str] = []
        self._observed_from_s = 0.0
        self._intervals = 0
        self._run_latency = no_latency()
        self._place(start or _first_allocation(application, pool, settings))
        self._schedule_key_shuffles()
        for failure in settings.failures:
            self._at(failure.at_s, partial(self._fail, failure))

    @property
    def clock(self) -> VirtualClock:
        return self._clock

    @property
    def duration_s(self) -> float:
        return float(self._engine.steps * self._settings.step_s)

    def latency_of_run(self) -> Latency:
        """End-to-end latency of every row that has left the application so far."""
        return summarise(self._run_latency, self._application.slo.percentile)

    # --- time ---------------------------------------------------------------------------------------------------

    def _run_to(self, time_s: float) -> None:
        last = min(round(time_s / self._settings.step_s), self._engine.steps)
        while self._events and self._step_of(self._events[0][0]) < last:
            at_s, _, happen = heapq.heappop(self._events)
            self._simulate_to(self._step_of(at_s))
            happen(at_s)
        self._simulate_to(last)
        while self._events and self._step_of(self._events[0][0]) <= last:
            at_s, _, happen = heapq.heappop(self._events)
            happen(at_s)

    def _simulate_to(self, step: int) -> None:
        while self._engine.step < step:
            if self._moved:
                self._rearranged()
            self._engine.run_to(step if self._intake is None else self._through(self._intake))

    def _rearranged(self) -> None:
        self._traffic.refresh(self._fleet.all())
        if self._intake is not None:
            self._intake.rearranged(self._queues)
        self._moved = False

    def _through(self, intake: Intake) -> int:
        """Let rows in for one step; returns the step up to which can be simulated then."""
        step = self._engine.step
        self._let_in[:, step] = intake.let_in(step, self._rows[:, step], self._queues)
        return step + 1

    def _step_of(self, time_s: float) -> int:
        return int(np.ceil(time_s / self._settings.step_s - 1e-9))

    def _at(self, time_s: float, happen: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), happen))

    def _schedule_key_shuffles(self) -> None:
        for i, operator in enumerate(self._application.operators):
            if operator.keyed and operator.keys.shuffles_per_minute > 0:
                every_s = 60.0 / operator.keys.shuffles_per_minute
                self._at(every_s, partial(self._shuffle, i, every_s, 1))

    def _shuffle(self, operator: int, every_s: float, number: int, _now_s: float) -> None:
        self._engine.shuffle_keys(operator)
        self._moved = True
        # Counted from the start: added up, the times would drift from the steps they fall on.
        self._at((number + 1) * every_s, partial(self._shuffle, operator, every_s, number + 1))

    # --- hosts --------------------------------------------------------------------------------------------------

    def _place(self, allocation: Allocation) -> None:
        allocation.check(self._application)
        self._observed = self._requested = allocation
        for name in allocation.hosts:
            self._host_runs(self._new_host(name, 0.0, ready_s=0.0))
        for name, placed in allocation.operators.items():
            self._engine.route(self._index[name], placed, self._slots())
        self._moved = True

    def _slots(self) -> dict[str, int]:
        return {h.name: h.slot for h in self._fleet.all()}

    def _new_host(self, name: str, now_s: float, *, ready_s: float) -> SimulatedHost:
        host = self._fleet.add(name, now_s, ready_s=ready_s)
        self._engine.add_host(host.slot, self._pool.host.bandwidth_bytes_per_s)
        return host

    def _host_runs(self, host: SimulatedHost) -> None:
        host.state = HostState.RUNNING
        self._engine.set_cores(host.slot, self._pool.host.cores)
        if host.name not in self._observed.hosts:
            self._observed = self._observed.with_hosts((*self._observed.hosts, host.name))

    def _add_hosts(self, names: tuple[str, ...], now_s: float) -> None:
        for name in names:
            host = self._new_host(name, now_s, ready_s=now_s + self._pool.host.start_s)
            self._done["hosts_added"] += 1
            if host.ready_s > now_s:
                self._at(host.ready_s, partial(self._host_ready, name))
            else:
                self._host_runs(host)

    def _host_ready(self, name: str, now_s: float) -> None:
        if name not in self._fleet or self._fleet[name].state is not HostState.STARTING:
            return
        self._host_runs(self._fleet[name])
        self._carry_out_pending(now_s)

    def _release_idle_hosts(self, now_s: float) -> None:
        for name in sorted(self._releasing):
            host = self._fleet[name]
            busy = any(name in placed.replica_hosts for placed in self._observed.operators.values())
            if busy or host.state is HostState.RELEASING:
                continue
            host.state = HostState.RELEASING
            self._observed = self._observed.with_hosts(tuple(h for h in self._observed.hosts if h != name))
            self._done["hosts_released"] += 1
            self._at(max(now_s, host.needed_until_s) + self._pool.host.release_s, partial(self._gone, name))

    def _gone(self, name: str, now_s: float) -> None:
        if name in self._fleet:
            self._engine.remove_host(self._fleet[name].slot)
            self._fleet.remove(name, now_s)
            self._releasing.discard(name)

    def _fail(self, failure: Failure, now_s: float) -> None:
        name = failure.host or max(
            (h.name for h in self._fleet.running()), key=lambda h: (self._observed.replicas_on(h), h), default=""
        )
        if name not in self._fleet:
            self._notes.append(f"{name or 'no host'} was to fail, but is not there")
            return
        self._notes.append(f"{name} failed")
        self._done["hosts_failed"] += 1
        slot = self._fleet[name].slot
        self._gone(name, now_s)
        running = [h.name for h in self._fleet.running()]
        survivors = [h for h in running if h not in self._releasing] or running
        if not survivors:
            survivors = list(new_host_names(frozenset(h.name for h in self._fleet.all()) | {name}, 1))
            self._add_hosts((survivors[0],), now_s)
            self._notes.append(f"no host is left: {survivors[0]} is started in its place")
        self._move_from_failed(name, slot, survivors, now_s)

    def _move_from_failed(self, failed: str, slot: int, survivors: list[str], now_s: float) -> None:
        """What ran on a failed host goes to the survivors in turn, and stands still until it has recovered."""
        ready_s = max(now_s, *(self._fleet[h].ready_s for h in survivors)) + self._settings.recovery_s
        self._pending = {n: p for n, p in self._pending.items() if failed not in p.replica_hosts}
        turns = itertools.cycle(sorted(survivors))
        operators = dict(self._observed.operators)
        hosts = (*(h for h in self._observed.hosts if h != failed), *(h for h in survivors if h not in self._observed.hosts))
        for name in self._observed.operators_on(failed):
            placed = self._observed.operators[name]
            moved = OperatorAllocation(
                tuple(next(turns) if h == failed else h for h in placed.replica_hosts), placed.shard_replicas
            )
            operators[name] = moved
            index = self._index[name]
            state_s = self._application.operators[index].state_bytes_per_shard / self._pool.host.bandwidth_bytes_per_s
            self._engine.pause_replicas_on(index, slot, ready_s)
            for lane in self._engine.lanes_on(index, slot):
                self._engine.pause_lane(index, lane, ready_s)
                self._engine.load_state(index, lane, state_s)
            if self._settings.service is ServiceModel.MICRO_BATCH:  # a batch needs all of its tasks
                self._engine.pause_operator(index, ready_s)
                self._engine.repeat_batch(index, ready_s)
        self._observed = Allocation(hosts, operators)
        for name, placed in operators.items():
            self._engine.route(self._index[name], placed, self._slots())
        # A host is not let go if what was to leave it has nowhere else to go now.
        self._releasing -= {h for placed in {**operators, **self._pending}.values() for h in placed.replica_hosts}
        self._requested = self._with_pending()
        self._moved = True

    # --- actions ------------------------------------------------------------------------------------------------

    def apply(self, actions: Sequence[Action]) -> None:
        """Everything that is asked for, or an `InvalidValue` and nothing."""
        if not actions:
            return
        new = tuple(h for a in actions if isinstance(a, AddHosts) for h in a.hosts)
        leaving = {h for a in actions if isinstance(a, ReleaseHosts) for h in a.hosts if h in self._fleet}
        pending = dict(self._pending)
        for action in actions:
            if isinstance(action, SetReplicas | MoveShards):
                pending[action.operator] = operator_after(action, {**self._observed.operators, **pending})
            if isinstance(action, SetTriggerInterval):
                require_operator(action.operator, self._index)
        self._check(new, self._releasing | leaving, pending)
        self._releasing |= leaving
        self._pending = pending
        self._add_hosts(new, self._clock.now_s())
        self._carry_out_pending(self._clock.now_s())
        for action in actions:
            if isinstance(action, SetTriggerInterval):
                self._engine.set_trigger(self._index[action.operator], action.trigger_s)

    def _check(self, new: tuple[str, ...], leaving: set[str], pending: dict[str, OperatorAllocation]) -> None:
        """Refuse what the pool or the application does not allow; hosts on their way out make room for new ones."""
        for name in new:
            require(name not in self._fleet, f"host {name!r} exists already")
        hosts = (*(h.name for h in self._fleet.all() if h.name not in leaving), *new)
        require(
            len(hosts) <= self._pool.max_hosts,
            f"{len(hosts)} hosts were asked for, but the pool has {self._pool.max_hosts}",
        )
        Allocation(hosts, {**self._observed.operators, **pending}).check(self._application)

    def _carry_out_pending(self, now_s: float) -> None:
        """Do what has been asked for, as far as the hosts it needs are running."""
        missing = {h.name for h in self._fleet.all() if h.state is not HostState.RUNNING}
        in_batches = self._settings.service is ServiceModel.MICRO_BATCH
        for name, placed in list(self._pending.items()):
            before = self._observed.operators[name]
            follows = in_batches or missing.isdisjoint(placed.replica_hosts)
            now = carry_out_so_far(placed, before, missing) if follows else before
            if now == placed:
                del self._pending[name]
            self._install(name, now, now_s)
        self._requested = self._with_pending()
        self._release_idle_hosts(now_s)
        self._limit_batches()
        self._moved = True

    def _limit_batches(self) -> None:
        """Keep batches short while hosts are on their way, as the live backend does: they are used by the next batch only."""
        slots = max(1, len(self._fleet.running())) * self._pool.host.cores
        for i, name in self._reading:
            rows = self._settings.micro_batch.max_rows
            if name in self._pending:
                rows = min(rows, self._meter.allowed_rows(i, self._observed.operators[name].replicas, slots))
            self._engine.limit_rows(i, rows)

    def _with_pending(self) -> Allocation:
        operators = {**self._observed.operators, **self._pending}
        existing = (h for h in self._fleet.all() if h.state is not HostState.RELEASING and h.name not in self._releasing)
        return Allocation(tuple(h.name for h in existing), operators)

    def _install(self, name: str, placed: OperatorAllocation, now_s: float) -> None:
        old = self._observed.operators[name]
        if placed == old:
            return
        self._count(old, placed)
        if placed.replicas != old.replicas and self._settings.activation is Activation.RESTART:
            self._restart(name, now_s)
        self._move_units(name, old, placed, now_s)
        for host in set(old.replica_hosts):
            self._need(host, self._engine.batch_end_s(self._index[name]))
        self._engine.route(self._index[name], placed, self._slots())
        self._observed = self._observed.with_operator(name, placed)

    def _count(self, old: OperatorAllocation, new: OperatorAllocation) -> None:
        if new.replicas > old.replicas:
            self._done["scale_outs"] += 1
        elif new.replicas < old.replicas:
            self._done["scale_ins"] += 1
        moved = moved_units(old, new)
        if moved:
            self._done["shards_moved"] += moved
        elif new.replicas == old.replicas:
            self._done["regroupings"] += 1

    def _restart(self, name: str, now_s: float) -> None:
        until_s = now_s + self._settings.restart_s
        self._pauses.append((now_s, until_s))
        whole = self._settings.restart_scope is RestartScope.APPLICATION
        for index in range(len(self._index)) if whole else [self._index[name]]:
            self._engine.pause_operator(index, until_s)
            if self._settings.restart_drops_queue:
                self._engine.drop_queue(index)

    def _move_units(self, name: str, old: OperatorAllocation, new: OperatorAllocation, now_s: float) -> None:
        """Rows of a shard wait while its route changes, and while its state is on the way to another host."""
        if not new.shard_replicas:
            return
        index = self._index[name]
        operator = self._application.operators[index]
        sync_s = self._synchronisation_s(name)
        batches = self._settings.service is ServiceModel.MICRO_BATCH
        for shard, (before, after) in enumerate(zip(old.shard_replicas, new.shard_replicas, strict=True)):
            source, target = old.replica_hosts[before], new.replica_hosts[after]
            if source == target and before == after:
                continue
            if source == target:
                if not batches:  # between micro-batches nothing is in flight, so regrouping needs no agreement
                    self._engine.pause_lane(index, shard, now_s + sync_s)
                continue
            transfer_s = operator.state_bytes_per_shard / self._pool.host.bandwidth_bytes_per_s
            if batches:
                self._engine.load_state(index, shard, sync_s + transfer_s)
            else:
                self._engine.pause_lane(index, shard, self._transfer(source, target, transfer_s, now_s) + sync_s)

    def _synchronisation_s(self, name: str) -> float:
        moves = self._settings.moves
        upstream = sum(
            self._observed.operators[e.upstream].replicas
            for e in self._application.inputs(name)
            if e.upstream in self._observed.operators
        )
        return moves.synchronisation_s + upstream * moves.synchronisation_per_upstream_replica_s

    def _transfer(self, source: str, target: str, duration_s: float, now_s: float) -> float:
        """When a state transfer ends: a link carries one at a time."""
        hosts = [self._fleet[h] for h in (source, target) if h in self._fleet]
        end_s = max([now_s, *(h.network_free_s for h in hosts)]) + duration_s
        for host in hosts:
            host.network_free_s = end_s
        self._need(source, end_s)
        return end_s

    def _need(self, host: str, until_s: float) -> None:
        self._fleet[host].needed_until_s = max(self._fleet[host].needed_until_s, until_s)

    # --- measurement --------------------------------------------------------------------------------------------

    def observe(self) -> Observation:
        start_s, end_s = self._observed_from_s, self._clock.now_s()
        interval_s = end_s - start_s
        state = self._engine.state
        first, last = round(start_s / self._settings.step_s), round(end_s / self._settings.step_s)
        totals = state.totals[0]
        latency = LatencyCounts(
            rows=state.latency_rows,
            sum_s=float(totals["latency_s"]),
            max_s=float(totals["latency_max_s"]),
            late_rows=float(totals["late_rows"]),
        )
        self._run_latency = self._run_latency.plus(latency)
        counts = self._meter.read(state, interval_s)
        observation = Observation(
            index=self._intervals,
            start_s=start_s,
            end_s=end_s,
            source_rows={s.name: float(self._rows[i, first:last].sum()) for i, s in enumerate(self._application.sources)},
            operators=operator_observations(counts, interval_s),
            hosts=self._observe_hosts(dict(zip(counts.names, counts.batches, strict=False)), interval_s),
            latency=summarise(latency, self._application.slo.percentile),
            observed=self._observed,
            requested=self._requested,
            core_s=self._fleet.take_billed_core_s(end_s),
            downtime_s=_covered(self._pauses, start_s, end_s),
            reconfigurations=dict(self._done),
            events=tuple(self._notes),
        )
        self._begin_interval(observation)
        return observation

    def _begin_interval(self, observation: Observation) -> None:
        for i, name in self._load_balanced:
            self._engine.begin_interval(i, observation.operators[name].replica_utilisation)
        self._engine.state.reset_counters()
        self._pauses = [(a, b) for a, b in self._pauses if b > observation.end_s]
        self._done.clear()
        self._notes.clear()
        self._observed_from_s = observation.end_s
        self._intervals += 1

    def _observe_hosts(self, batches: Mapping[str, OperatorBatches], interval_s: float) -> dict[str, HostObservation]:
        memory = self._traffic.memory_bytes()
        counted = self._engine.state.hosts
        cores = self._pool.host.cores
        busy_share = {h.name: float(counted["busy_s"][h.slot]) / (interval_s * cores) for h in self._fleet.all()}
        utilisation = measure_host_utilisation(self._observed, batches, cores, interval_s) if batches else busy_share
        return {
            host.name: HostObservation(
                name=host.name,
                state=host.state,
                cores=cores,
                utilisation=utilisation.get(host.name, 0.0),
                busy_share=busy_share[host.name],
                memory_bytes=float(memory[host.slot]),
                network_bytes_per_s=float(counted["bytes"][host.slot]) / interval_s,
            )
            for host in self._fleet.all()
        }


def _draw(rows_per_step: Floats, arrivals: Arrivals, rng: np.random.Generator) -> Floats:
    if arrivals is Arrivals.POISSON:
        return rng.poisson(rows_per_step).astype(np.float64)
    return np.ascontiguousarray(rows_per_step, dtype=np.float64)


def _first_allocation(application: Application, pool: Pool, settings: SimulatorSettings) -> Allocation:
    settings.check(pool)
    count = max(settings.initial_hosts, pool.min_hosts)
    replicas = {o.name: settings.initial_replicas for o in application.operators}
    return spread(application, new_host_names(frozenset(), count), replicas)


def _covered(pauses: list[tuple[float, float]], start_s: float, end_s: float) -> float:
    """How much of the interval is covered by at least one of the pauses."""
    covered = 0.0
    reached = start_s
    for begin, end in sorted(pauses):
        length = min(end, end_s) - max(begin, reached)
        if length > 0:
            covered += length
            reached = min(end, end_s)
    return covered
