"""The micro-batch model: an operator's replicas process a batch together, as Spark does."""

from __future__ import annotations

import math

from springtide.backends.simulator.arrays import KEY, SHARED, SHUFFLE
from springtide.backends.simulator.compiling import compiled
from springtide.backends.simulator.dropping import drop_late
from springtide.backends.simulator.flow import NO_ROWS, lane_share, output


@compiled
def run_batches(sim, step, i):  # type: ignore[no-untyped-def]
    """One batch after the other, each taking what has arrived, all rows done at its end."""
    op = sim.operators[i]
    world = sim.world[0]
    begin = step * world.step_s
    end = begin + world.step_s
    now = begin
    while True:
        if op.batch_active:
            _work_on_batch(sim, now, min(end, op.batch_end_s), i)
            if op.batch_end_s >= end:
                return
            now = max(now, op.batch_end_s)
            _finish_batch(sim, i)
        start = max(now, op.batch_next_s, op.paused_until_s)
        if start < end and not _start_batch(sim, step, start, i):
            start = max(start, _next_row_s(sim, step, i))
            if start < end and not _start_batch(sim, step, start, i):
                return
        if start >= end:
            return
        now = start


@compiled
def _next_row_s(sim, step, i):  # type: ignore[no-untyped-def]
    """When an operator that waits for rows has one to work on."""
    op = sim.operators[i]
    newest = op.record_next - 1
    record = newest & (sim.records.shape[1] - 1)
    if newest < 0 or sim.records[i, record].step != step or sim.records[i, record].rows <= 0.0:
        return math.inf
    if sim.records[i, record].ready_s >= 0.0:
        return sim.records[i, record].ready_s
    lane = op.lane_first
    done = sim.lanes[lane].done if sim.lanes[lane].head == newest else 0.0
    return (step + min(1.0, done + 1.0 / sim.records[i, record].rows)) * sim.world[0].step_s


@compiled
def _start_batch(sim, step, start, i):  # type: ignore[no-untyped-def]
    """Begin a batch with the rows that have arrived by `start`; false when there are none."""
    lanes = sim.lanes
    op = sim.operators[i]
    world = sim.world[0]
    if world.timeout_s < math.inf:
        drop_late(sim, i, start)
    lane = op.lane_first
    head, done = lanes[lane].head, lanes[lane].done
    records = sim.records.shape[1]
    newest = op.record_next - 1
    rows = 0.0
    head_to, done_to = head, done
    while head_to <= newest:
        limit = _arrived(sim, i, newest, step, start) if head_to == newest else 1.0
        whole = sim.records[i, head_to & (records - 1)].rows
        part = max(0.0, limit - done_to)
        if rows + whole * part > op.batch_max_rows:
            done_to += (op.batch_max_rows - rows) / whole
            rows = op.batch_max_rows
            break
        rows += whole * part
        if limit < 1.0:
            done_to = max(done_to, limit)
            break
        head_to += 1
        done_to = 0.0
    if rows <= NO_ROWS:
        return False
    _take_lanes(sim, i, head, done, head_to, done_to)
    op.batch_active = 1
    op.batch_head, op.batch_done = head, done
    op.batch_head_to, op.batch_done_to = head_to, done_to
    op.batch_start_s = start
    op.batch_end_s = start + _batch_duration(sim, i)
    op.batch_next_s = max(op.batch_end_s, start + op.batch_trigger_s)
    for lane in range(op.lane_first, op.lane_after):
        lanes[lane].head = head_to
        lanes[lane].done = done_to
    return True


@compiled
def _arrived(sim, i, number, step, now):  # type: ignore[no-untyped-def]
    """The part of a record that is there by `now`."""
    world = sim.world[0]
    record = number & (sim.records.shape[1] - 1)
    if sim.records[i, record].step != step:
        return 1.0
    ready = sim.records[i, record].ready_s
    if ready < 0.0:
        return min(1.0, now / world.step_s - step)
    return 1.0 if now >= ready else 0.0


@compiled
def _take_lanes(sim, i, head, done, head_to, done_to):  # type: ignore[no-untyped-def]
    lanes = sim.lanes
    op = sim.operators[i]
    records = sim.records.shape[1]
    for lane in range(op.lane_first, op.lane_after):
        lanes[lane].batch_rows = 0.0
    for number in range(head, min(head_to + 1, op.record_next)):
        record = number & (records - 1)
        part = (done_to if number == head_to else 1.0) - (done if number == head else 0.0)
        rows = sim.records[i, record].rows * part
        if rows <= 0.0:
            continue
        for lane in range(op.lane_first, op.lane_after):
            lanes[lane].batch_rows += rows * lane_share(sim, i, lane, record)


@compiled
def _batch_duration(sim, i):  # type: ignore[no-untyped-def]
    """Fixed overhead plus the slowest host: the tasks, shards and rows of its replicas, and state they must load first."""
    lanes, replicas, hosts = sim.lanes, sim.replicas, sim.hosts
    op = sim.operators[i]
    world = sim.world[0]
    first, after = op.replica_first, op.replica_first + op.replica_count
    op.batch_replicas = after - first
    op.batch_usual = 1
    for r in range(first, after):
        replicas[r].batch_work_s = world.batch_task_s
        replicas[r].batch_shards = 0.0
        replicas[r].batch_rows = 0.0
        replicas[r].batch_host = replicas[r].host
        if replicas[r].host >= 0:
            hosts[replicas[r].host].running += 1.0
    for lane in range(op.lane_first, op.lane_after):
        rows = lanes[lane].batch_rows
        r = lanes[lane].replica
        if op.grouping in (SHARED, SHUFFLE):
            # A batch deals its rows anew, those too that came when there were other replicas.
            for s in range(first, after):
                replicas[s].batch_rows += rows / (after - first)
        else:
            replicas[r].batch_rows += rows
        if op.grouping == KEY:
            replicas[r].batch_shards += 1.0  # every shard is opened and committed, rows or none
        if lanes[lane].load_s > 0.0:
            replicas[r].batch_work_s += lanes[lane].load_s
            lanes[lane].load_s = 0.0
            op.batch_usual = 0
    for r in range(first, after):
        replicas[r].batch_work_s += replicas[r].batch_shards * world.batch_shard_s + replicas[r].batch_rows * op.service_s
    return world.batch_fixed_s + _slowest_host_s(sim, i)


@compiled
def _slowest_host_s(sim, i):  # type: ignore[no-untyped-def]
    """How long the tasks of a batch take where they take longest; each replica learns how long they take where it is.

    The tasks on a host take turns with its cores, and with the tasks of other operators' batches that run there.
    """
    replicas, hosts = sim.replicas, sim.hosts
    first, after = sim.operators[i].replica_first, sim.operators[i].replica_first + sim.operators[i].replica_count
    slowest = 0.0
    for r in range(first, after):
        if replicas[r].host >= 0:
            hosts[replicas[r].host].batch_tasks = 0.0
            hosts[replicas[r].host].batch_work_s = 0.0
            hosts[replicas[r].host].batch_longest_s = 0.0
    for r in range(first, after):
        if replicas[r].host >= 0:
            host = hosts[replicas[r].host]
            host.batch_tasks += 1.0
            host.batch_work_s += replicas[r].batch_work_s
            host.batch_longest_s = max(host.batch_longest_s, replicas[r].batch_work_s)
    for r in range(first, after):
        replicas[r].batch_span_s = replicas[r].batch_work_s
        if replicas[r].host >= 0 and hosts[replicas[r].host].cores > 0:
            host = hosts[replicas[r].host]
            slots = host.batch_tasks * min(1.0, host.cores / host.running)
            replicas[r].batch_span_s = max(host.batch_longest_s, host.batch_work_s / slots)
        slowest = max(slowest, replicas[r].batch_span_s)
    return slowest


@compiled
def _work_on_batch(sim, begin, end, i):  # type: ignore[no-untyped-def]
    """Count the time for which replicas and hosts are busy between `begin` and `end`."""
    replicas, hosts = sim.replicas, sim.hosts
    op = sim.operators[i]
    fixed = op.batch_end_s - op.batch_start_s
    first, after = op.replica_first, op.replica_first + op.batch_replicas
    for r in range(first, after):
        fixed = min(fixed, op.batch_end_s - op.batch_start_s - replicas[r].batch_span_s)
    start = op.batch_start_s + max(0.0, fixed)
    for r in range(first, after):
        span = replicas[r].batch_span_s
        if span <= 0.0:
            continue
        # Tasks on a host take turns: each is at work for its part of the time that all of them take.
        busy = max(0.0, min(end, start + span) - max(begin, start)) * (replicas[r].batch_work_s / span)
        replicas[r].busy_s += busy
        host = replicas[r].batch_host
        if host >= 0:
            busy = min(busy, hosts[host].left_s)
            hosts[host].busy_s += busy
            hosts[host].left_s -= busy


@compiled
def _learn_from_batch(sim, i):  # type: ignore[no-untyped-def]
    """Add a batch to the sums that its costs are learned from, unless state had to be loaded in it."""
    replicas, hosts = sim.replicas, sim.hosts
    op = sim.operators[i]
    if op.batch_usual == 0:
        return
    sums = sim.batches[i]
    work, slowest, cores, read = 0.0, 0.0, 0.0, 0.0
    for host in range(len(hosts)):
        cores += hosts[host].cores
    for r in range(op.replica_first, op.replica_first + op.batch_replicas):
        shards, rows, seconds = replicas[r].batch_shards, replicas[r].batch_rows, replicas[r].batch_work_s
        sums.tasks += 1.0
        sums.s += shards
        sums.r += rows
        sums.ss += shards * shards
        sums.sr += shards * rows
        sums.rr += rows * rows
        sums.y += seconds
        sums.sy += shards * seconds
        sums.ry += rows * seconds
        sums.yy += seconds * seconds
        work += seconds
        read += rows
        slowest = max(slowest, replicas[r].batch_span_s)
    driver = op.batch_end_s - op.batch_start_s - slowest
    sums.batches += 1.0
    sums.read_square += read * read
    sums.driver_s += driver
    sums.driver_square += driver * driver
    sums.busiest_s += _busiest_slot_s(sim, i)
    sums.mean_s += work / max(1.0, cores)


@compiled
def _busiest_slot_s(sim, i):  # type: ignore[no-untyped-def]
    """How long the tasks of the batch that ends run where they run longest: what they wait for others is not their time."""
    replicas, hosts = sim.replicas, sim.hosts
    op = sim.operators[i]
    first, after = op.replica_first, op.replica_first + op.batch_replicas
    busiest = 0.0
    for r in range(first, after):
        host = replicas[r].batch_host
        if host >= 0:
            hosts[host].batch_tasks = 0.0
            hosts[host].batch_work_s = 0.0
    for r in range(first, after):
        host = replicas[r].batch_host
        if host >= 0:
            hosts[host].batch_tasks += 1.0
            hosts[host].batch_work_s += replicas[r].batch_work_s
    for r in range(first, after):
        host = replicas[r].batch_host
        busiest = max(busiest, replicas[r].batch_work_s)
        if host >= 0 and hosts[host].cores > 0:
            busiest = max(busiest, hosts[host].batch_work_s / min(hosts[host].cores, hosts[host].batch_tasks))
    return busiest


@compiled
def _count_bytes(sim, i, lane, rows):  # type: ignore[no-untyped-def]
    lanes, replicas, hosts = sim.lanes, sim.replicas, sim.hosts
    op = sim.operators[i]
    first, after = lanes[lane].replica, lanes[lane].replica + 1
    if op.grouping == SHARED:
        after = op.replica_first + op.replica_count
    for r in range(first, after):
        host = replicas[r].host
        if host >= 0:
            hosts[host].bytes += rows / (after - first) * sim.bytes_per_row[i, host]


@compiled
def _finish_batch(sim, i):  # type: ignore[no-untyped-def]
    """Commit: every row of the batch leaves at its end."""
    lanes, replicas, hosts = sim.lanes, sim.replicas, sim.hosts
    op = sim.operators[i]
    records = sim.records.shape[1]
    _learn_from_batch(sim, i)
    for number in range(op.batch_head, min(op.batch_head_to + 1, op.record_next)):
        begin = op.batch_done if number == op.batch_head else 0.0
        to = op.batch_done_to if number == op.batch_head_to else 1.0
        if to > begin:
            output(sim, i, number & (records - 1), begin, to, to - begin, op.batch_end_s)
    for r in range(op.replica_first, op.replica_first + op.batch_replicas):
        if replicas[r].batch_host >= 0:
            host = replicas[r].batch_host
            hosts[host].running = max(0.0, hosts[host].running - 1.0)
    for lane in range(op.lane_first, op.lane_after):
        rows = min(lanes[lane].batch_rows, lanes[lane].rows)
        lanes[lane].rows -= rows
        lanes[lane].busy_s += rows * op.service_s
        op.processed += rows
        lanes[lane].batch_rows = 0.0
        _count_bytes(sim, i, lane, rows)
    op.batch_committed_s = op.batch_end_s
    op.batch_active = 0
