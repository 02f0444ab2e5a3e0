"""The kernel and its arrays behind a small interface: run, route, pause, and read what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from springtide.backends.simulator import arrays
from springtide.backends.simulator.arrays import Floats, Ints, Simulation
from springtide.backends.simulator.borrowing import places_of
from springtide.backends.simulator.kernel import EMITTED_FULL, ENTRIES_FULL, NOT_BEGUN, RECORDS_FULL, run_steps
from springtide.backends.simulator.settings import BalancedBy, SimulatorSettings
from springtide.backends.simulator.topology import KeySpace, new_simulation
from springtide.model.allocation import OperatorAllocation
from springtide.model.application import Application, Grouping


class Engine:
    """Knows operators, lanes, replicas and hosts by number only; `SimulatorBackend` knows them by name."""

    def __init__(
        self, application: Application, settings: SimulatorSettings, source_rows: Floats, seed: int, host_slots: int
    ) -> None:
        self.application = application
        self._by_pending = settings.balanced_by is BalancedBy.PENDING
        self.step = 0
        self.steps = source_rows.shape[1]
        self._source_rows = source_rows
        self._next_operator = NOT_BEGUN
        self._rng = np.random.default_rng([seed, 1])
        self._key_spaces = {
            i: KeySpace(o.keys, o.shards, np.random.default_rng([seed, 2, i]))
            for i, o in enumerate(application.operators)
            if o.keyed
        }
        self._sim = new_simulation(application, settings, self.steps, host_slots)
        self._located: Simulation | None = None
        self._located_at = np.zeros((0, 3), np.int64)
        for i, keys in self._key_spaces.items():
            self._sim.share[self.lanes(i), 0] = keys.shares()

    @property
    def state(self) -> Simulation:
        """The arrays themselves, for whoever measures; they are replaced when they grow, so do not keep them."""
        return self._sim

    def lanes(self, operator: int) -> slice:
        of = self._sim.operators[operator]
        return slice(int(of["lane_first"]), int(of["lane_after"]))

    def replicas(self, operator: int) -> slice:
        of = self._sim.operators[operator]
        return slice(int(of["replica_first"]), int(of["replica_first"] + of["replica_count"]))

    def lanes_on(self, operator: int, slot: int) -> list[int]:
        """The operator's lanes that are served on a host and nowhere else."""
        if self.application.operators[operator].grouping is Grouping.SHARED:
            return []
        lanes = self.lanes(operator)
        at = self.lane_hosts()[lanes]
        return [int(lane) for lane in np.flatnonzero(at == slot)]

    def lane_hosts(self) -> Ints:
        """The host of each lane; of a queue shared by several replicas, the first one's."""
        return np.asarray(self._sim.replicas["host"][self._sim.lanes["replica"]])

    def _places(self) -> Ints:
        if self._located is not self._sim:
            self._located, self._located_at = self._sim, places_of(self._sim)
        return self._located_at

    def run_to(self, step: int) -> None:
        """Simulate up to `step`, giving the kernel more room whenever it asks for it."""
        while self.step < step:
            full, self.step, self._next_operator = run_steps(
                self._places(), self._source_rows, self.step, self._next_operator, step, self._rng
            )
            if full == RECORDS_FULL:
                self._sim = arrays.with_more_records(self._sim)
            elif full == ENTRIES_FULL:
                self._sim = arrays.with_more_entries(self._sim)
            elif full == EMITTED_FULL:
                self._sim = arrays.with_more_emitted(self._sim)

    def add_host(self, slot: int, bandwidth_bytes_per_s: float) -> None:
        """Make room for a host; it does nothing until it is given cores."""
        while slot >= len(self._sim.hosts):
            self._sim = arrays.with_more_hosts(self._sim)
        self._sim.hosts[slot] = 0.0
        self._sim.hosts["bandwidth"][slot] = bandwidth_bytes_per_s

    def set_cores(self, slot: int, cores: float) -> None:
        self._sim.hosts["cores"][slot] = cores

    def remove_host(self, slot: int) -> None:
        self.set_cores(slot, 0.0)
        batch_host = self._sim.replicas["batch_host"]
        batch_host[batch_host == slot] = -1

    def route(self, operator: int, placed: OperatorAllocation, slots: Mapping[str, int]) -> None:
        """Put an operator's replicas on hosts and its lanes on replicas; waiting rows stay in their lanes."""
        of = self._sim.operators[operator]
        first, before = int(of["replica_first"]), int(of["replica_count"])
        replicas = self._sim.replicas[first : of["replica_after"]]
        hosts = np.full(len(replicas), -1)
        hosts[: placed.replicas] = [slots[h] for h in placed.replica_hosts]
        replicas["want_s"][replicas["host"] != hosts] = 0.0
        replicas["host"] = hosts
        self._sim.operators["replica_count"][operator] = placed.replicas
        lanes = self.lanes(operator)
        if placed.shard_replicas:
            self._sim.lanes["replica"][lanes] = first + np.asarray(placed.shard_replicas)
            return
        # A lane that is switched off hands what waits in it to the replicas that stay.
        self._sim.lanes["replica"][lanes] = first + np.arange(lanes.stop - lanes.start) % placed.replicas
        if before != placed.replicas:
            self._set_shares(operator, _even_shares(lanes.stop - lanes.start, placed.replicas))
            self._sim.levels[min(of["level_first"] + before, of["level_after"]) : of["level_after"]] = 0.0
            if self._by_pending and of["level_after"] > of["level_first"]:
                self._set_levels(operator, self._pending(operator))

    def shuffle_keys(self, operator: int) -> None:
        keys = self._key_spaces[operator]
        keys.shuffle()
        self._set_shares(operator, keys.shares())

    def _set_shares(self, operator: int, shares: Floats) -> None:
        """Begin a new epoch; records that came before keep the shares of theirs."""
        of = self._sim.operators[operator]
        epoch = int(of["epoch"]) + 1
        waiting = of["record_next"] > of["record_first"]
        oldest_record = int(of["record_first"]) % self._sim.records.shape[1]
        oldest = int(self._sim.records[operator, oldest_record]["epoch"]) if waiting else epoch
        while epoch - oldest >= self._sim.share.shape[1]:
            self._sim = arrays.with_more_epochs(self._sim)
        self._sim.operators["epoch"][operator] = epoch
        self._sim.share[self.lanes(operator), epoch % self._sim.share.shape[1]] = shares

    def begin_interval(self, operator: int, utilisation: Floats) -> None:
        """Give a load-balanced operator the levels that an interval begins with; the utilisation is that of the last one."""
        self._set_levels(operator, self._pending(operator) if self._by_pending else utilisation)

    def _set_levels(self, operator: int, levels: Floats) -> None:
        first = int(self._sim.operators["level_first"][operator])
        self._sim.levels[first : first + len(levels)] = np.minimum(1.0, levels)

    def _pending(self, operator: int) -> Floats:
        """What waits for each replica now, as the share of an interval that it takes."""
        of = self._sim.operators[operator]
        lanes = self._sim.lanes[self.lanes(operator)]
        rows = np.bincount(lanes["replica"] - of["replica_first"], weights=lanes["rows"], minlength=of["replica_count"])
        return np.asarray(rows * (of["service_s"] / self._sim.world["interval_s"][0]), dtype=np.float64)

    def host_shares(self, operator: int) -> Floats:
        """The part of an operator's rows that is processed on each host."""
        if self.application.operators[operator].keyed:
            shares = self.lane_shares(operator)
            at = self._sim.replicas["host"][self._sim.lanes["replica"][self.lanes(operator)]]
        else:
            at = self._sim.replicas["host"][self.replicas(operator)]
            shares = np.full(len(at), 1.0 / len(at))
        return np.bincount(at[at >= 0], weights=shares[at >= 0], minlength=len(self._sim.hosts)).astype(np.float64)

    def lane_shares(self, operator: int) -> Floats:
        """The part of an operator's rows that each of its lanes receives."""
        return self._sim.share[self.lanes(operator), int(self._sim.operators["epoch"][operator]) % self._sim.share.shape[1]]

    def set_traffic(self, edge_delay_s: Floats, bytes_per_row: Floats) -> None:
        self._sim.edges["delay_s"] = edge_delay_s
        self._sim.bytes_per_row[:] = bytes_per_row

    def pause_operator(self, operator: int, until_s: float) -> None:
        paused = self._sim.operators["paused_until_s"]
        paused[operator] = max(paused[operator], until_s)

    def pause_lane(self, operator: int, lane: int, until_s: float) -> None:
        paused = self._sim.lanes["paused_until_s"][self.lanes(operator)]
        paused[lane] = max(paused[lane], until_s)

    def pause_replicas_on(self, operator: int, slot: int, until_s: float) -> None:
        """Let replicas on a host take nothing from a queue that they share with others."""
        replicas = self._sim.replicas[self.replicas(operator)]
        paused = replicas["paused_until_s"]
        paused[replicas["host"] == slot] = until_s

    def load_state(self, operator: int, lane: int, duration_s: float) -> None:
        """Let the next micro-batch spend time on loading a shard that has come from another host."""
        self._sim.lanes["load_s"][self.lanes(operator)][lane] += duration_s

    def repeat_batch(self, operator: int, from_s: float) -> None:
        """Run the micro-batch that an operator is in, if any, once more from its start."""
        of = self._sim.operators[operator : operator + 1]
        if of["batch_active"][0]:
            of["batch_end_s"] += from_s - of["batch_start_s"]
            of["batch_start_s"] = from_s

    def set_trigger(self, operator: int, trigger_s: float) -> None:
        """Let batches start every so many seconds at most, the next one already."""
        of = self._sim.operators[operator : operator + 1]
        of["batch_trigger_s"] = trigger_s
        if of["batch_end_s"][0] > 0:  # there has been one
            of["batch_next_s"] = max(of["batch_end_s"][0], of["batch_start_s"][0] + trigger_s)

    def limit_rows(self, operator: int, rows: float) -> None:
        """Let the next batches take at most so many rows."""
        self._sim.operators["batch_max_rows"][operator] = rows

    def batch_end_s(self, operator: int) -> float:
        """When the micro-batch that an operator is in ends; 0 without one."""
        of = self._sim.operators[operator]
        return float(of["batch_end_s"]) if of["batch_active"] else 0.0

    def drop_queue(self, operator: int) -> None:
        """Lose everything that waits, as a restarted Storm topology does; it is counted."""
        of = self._sim.operators[operator : operator + 1]
        lanes = self._sim.lanes[self.lanes(operator)]
        lost = lanes["rows"] - (lanes["batch_rows"] if of["batch_active"][0] else 0.0)
        of["dropped_full"] += lost.sum()
        lanes["rows"] -= lost
        lanes["head"] = of["record_next"][0]
        lanes["done"] = 0.0
        of["backlog"] = lanes["rows"].sum()


def _even_shares(lanes: int, replicas: int) -> Floats:
    if lanes == 1:
        return np.ones(1)
    return np.where(np.arange(lanes) < replicas, 1.0 / replicas, 0.0)
