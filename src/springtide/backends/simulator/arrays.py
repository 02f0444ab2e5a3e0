"""The simulator's state as arrays of records, so that compiled code can work on it.

Words. A *lane* is one first-in-first-out queue: a shard of a keyed operator, a replica slot of a shuffled or
load-balanced one, or the single queue of a shared one. A *record* holds the rows that one operator received in one
step; it is stored once, and each lane owns its share of it. An *entry* is the part of a record that entered the
application in the same step: rows, their mean entry time and the width of that time. An *epoch* is a time during
which the lanes' shares stay the same. Records, entries and epochs are numbered from 0 for ever; their place in an
array is the number modulo the array's length, a power of two.

There are few arrays of many fields rather than the other way round because compiled functions hand the whole state
to one another by value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[Any]

SHUFFLE, KEY, LOAD_BALANCED, SHARED = range(4)


def _fields(*, ints: str = "", floats: str = "") -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in ints.split()] + [(name, np.float64) for name in floats.split()])


OPERATOR = _fields(
    ints="edge_first edge_after lane_first lane_after replica_first replica_after level_first level_after"
    " grouping sink replica_count epoch"
    " record_first record_next entry_next"  # what waits: numbers of records and entries
    " emitted_first emitted_count"  # what it sent on in the present step
    " batch_active batch_usual batch_replicas"
    " batch_head batch_head_to",  # the micro-batch it is in, from head/done to head_to/done_to
    floats="service_s beyond_step_s queue_rows paused_until_s backlog emitted_rows emitted_ready_s"
    " batch_start_s batch_end_s batch_committed_s batch_done batch_done_to batch_next_s batch_trigger_s batch_max_rows"
    " offered processed dropped_full dropped_late age_s",  # counted since the last observation
)
EDGE = _fields(ints="upstream", floats="selectivity delay_s")  # upstream: an operator's index, or -1 - a source's
LANE = _fields(ints="replica head", floats="paused_until_s load_s rows done batch_rows arrived busy_s")
REPLICA = _fields(
    ints="host batch_host", floats="paused_until_s work want_s batch_work_s batch_span_s batch_shards batch_rows busy_s"
)
HOST = _fields(
    floats="cores bandwidth want_s here_s later_s left_s scale network_want network_scale network_left running busy_s bytes"
    " batch_tasks batch_work_s batch_longest_s"  # of the batch that is being begun
)
# Sums over the batches that ended, and over their tasks (see monitor.batch_costs): s shards and r rows took y seconds.
BATCHES = _fields(floats="batches tasks s r ss sr rr y sy ry yy read_square driver_s driver_square busiest_s mean_s")
# Rows of a record are there at once from `ready_s` on; below 0, they come all through its step.
RECORD = _fields(ints="epoch step entry entries", floats="rows ready_s")
ENTRY = _fields(ints="key", floats="rows time_s width_s")
# Rows leaving the operator at hand, summed by the step in which they entered the application.
SLOT = _fields(ints="stamp touched", floats="rows moment leaving low high")
TOTALS = _fields(ints="stamp touched emitted", floats="latency_s latency_max_s late_rows")
WORLD = _fields(
    ints="exponential micro_batch",
    floats="step_s interval_s timeout_s slo_s batch_fixed_s batch_task_s batch_shard_s",
)

COUNTED = {
    "operators": ("offered", "processed", "dropped_full", "dropped_late", "age_s"),
    "lanes": ("arrived", "busy_s"),
    "replicas": ("busy_s",),
    "hosts": ("busy_s", "bytes"),
    "totals": ("latency_s", "latency_max_s", "late_rows"),
    "batches": BATCHES.names or (),
}


class Simulation(NamedTuple):
    """Everything the kernel works on."""

    operators: Records
    edges: Records
    lanes: Records
    replicas: Records
    hosts: Records
    records: Records  # [operator, record]
    entries: Records  # [operator, entry]
    emitted: Records  # entries on their way to the next operators
    slots: Records
    share: Floats  # [lane, epoch]
    levels: Floats  # U of PSPS Algorithm 1, per lane of load-balanced operators
    level_share: Floats  # [load-balanced lane, record]
    bytes_per_row: Floats  # [operator, host]: bytes on the host's network for each row processed there
    latency_rows: Floats
    totals: Records
    world: Records
    batches: Records

    def reset_counters(self) -> None:
        for name, fields in COUNTED.items():
            for field in fields:
                getattr(self, name)[field] = 0.0
        self.latency_rows[:] = 0.0


def power_of_two(at_least: int) -> int:
    return 1 << max(0, at_least - 1).bit_length()


def new_slots(steps: int) -> Records:
    # Rows older than 2^20 steps share a slot: their mean entry time stays exact, only its spread is lost.
    return np.zeros(power_of_two(min(steps + 1, 1 << 20)), SLOT)


def with_more_records(sim: Simulation) -> Simulation:
    """The same state with room for twice as many records."""
    # A load-balanced lane's record numbers are its operator's: each slot copied to both halves serves either.
    return sim._replace(
        records=_regrown(sim.records, sim.operators["record_first"], sim.operators["record_next"]),
        level_share=np.concatenate([sim.level_share, sim.level_share], axis=1),
    )


def with_more_entries(sim: Simulation) -> Simulation:
    """The same state with room for twice as many entries."""
    operators, length = sim.operators, sim.records.shape[1]
    oldest = sim.records[np.arange(len(operators)), operators["record_first"] % length]["entry"]
    waiting = operators["record_next"] > operators["record_first"]
    first = np.where(waiting, oldest, operators["entry_next"])
    return sim._replace(entries=_regrown(sim.entries, first, operators["entry_next"]))


def with_more_emitted(sim: Simulation) -> Simulation:
    return sim._replace(emitted=np.concatenate([sim.emitted, np.zeros_like(sim.emitted)]))


def with_more_hosts(sim: Simulation) -> Simulation:
    """The same state with room for twice as many hosts."""
    return sim._replace(
        hosts=np.concatenate([sim.hosts, np.zeros_like(sim.hosts)]),
        bytes_per_row=np.concatenate([sim.bytes_per_row, np.zeros_like(sim.bytes_per_row)], axis=1),
    )


def with_more_epochs(sim: Simulation) -> Simulation:
    """The same state with room for twice as many epochs."""
    lanes, length = sim.share.shape
    share = np.zeros((lanes, 2 * length))
    for operator in sim.operators:
        of_operator = slice(operator["lane_first"], operator["lane_after"])
        for number in range(max(0, operator["epoch"] - length + 1), operator["epoch"] + 1):
            share[of_operator, number % (2 * length)] = sim.share[of_operator, number % length]
    return sim._replace(share=share)


def _regrown(array: Records, first: Ints, after_last: Ints) -> Records:
    rows, length = array.shape
    grown = np.zeros((rows, 2 * length), array.dtype)
    for row in range(rows):
        live = np.arange(first[row], after_last[row])
        grown[row, live % (2 * length)] = array[row, live % length]
    return grown
