"""Rows that are never processed: those that grew too old, and those that found the queue full."""

from __future__ import annotations

from springtide.backends.simulator.compiling import compiled
from springtide.backends.simulator.flow import NO_ROWS, lane_share


@compiled
def drop_late(sim, i, now):  # type: ignore[no-untyped-def]
    """Take rows older than the time-out out of the queue, oldest records first."""
    lanes = sim.lanes
    op = sim.operators[i]
    world = sim.world[0]
    records = sim.records.shape[1]
    entries = sim.entries.shape[1]
    first_lane, after_lane = op.lane_first, op.lane_after
    oldest = op.record_next
    for lane in range(first_lane, after_lane):
        if lanes[lane].rows > NO_ROWS:
            oldest = min(oldest, lanes[lane].head)
    clean = 0
    for number in range(oldest, op.record_next):
        record = number & (records - 1)
        late = 0.0
        begin = sim.records[i, record].entry
        for k in range(begin, begin + sim.records[i, record].entries):
            slot = k & (entries - 1)
            if now - sim.entries[i, slot].time_s > world.timeout_s:
                late += sim.entries[i, slot].rows
                sim.entries[i, slot].rows = 0.0
        if late <= 0.0 and sim.records[i, record].rows > 0.0:
            # Where paths of different length meet, ages are not quite in order: look a little further.
            clean += 1
            if clean > 16:
                return
            continue
        sim.records[i, record].rows = max(0.0, sim.records[i, record].rows - late)
        for lane in range(first_lane, after_lane):
            if lanes[lane].rows <= 0.0 or lanes[lane].head > number:
                continue
            left = 1.0 - lanes[lane].done if lanes[lane].head == number else 1.0
            gone = min(lanes[lane].rows, late * left * lane_share(sim, i, lane, record))
            lanes[lane].rows -= gone
            op.backlog -= gone
            op.dropped_late += gone
            if not world.micro_batch and sim.records[i, record].rows <= 0.0 and lanes[lane].head == number:
                lanes[lane].head = number + 1
                lanes[lane].done = 0.0


@compiled
def drop_overflow(sim, i):  # type: ignore[no-untyped-def]
    """Drop what waits beyond the queue's bound, out of the rows that came last."""
    lanes = sim.lanes
    op = sim.operators[i]
    newest = op.record_next - 1
    record = newest & (sim.records.shape[1] - 1)
    entries = sim.entries.shape[1]
    waiting = 0.0
    of_newest = 0.0
    for lane in range(op.lane_first, op.lane_after):
        waiting += lanes[lane].rows
        of_newest += _waiting_of(sim, i, lane, newest)
    if waiting <= op.queue_rows or of_newest <= 0.0:
        return
    kept = max(0.0, 1.0 - (waiting - op.queue_rows) / of_newest)
    for lane in range(op.lane_first, op.lane_after):
        gone = (1.0 - kept) * _waiting_of(sim, i, lane, newest)
        lanes[lane].rows -= gone
        lanes[lane].arrived -= gone
        op.dropped_full += gone
    sim.records[i, record].rows *= kept
    begin = sim.records[i, record].entry
    for k in range(begin, begin + sim.records[i, record].entries):
        sim.entries[i, k & (entries - 1)].rows *= kept


@compiled
def _waiting_of(sim, i, lane, number):  # type: ignore[no-untyped-def]
    """The rows of a record that still wait in a lane."""
    lanes = sim.lanes
    if lanes[lane].rows <= 0.0 or lanes[lane].head > number:
        return 0.0
    record = number & (sim.records.shape[1] - 1)
    left = 1.0 - lanes[lane].done if lanes[lane].head == number else 1.0
    return min(lanes[lane].rows, sim.records[i, record].rows * left * lane_share(sim, i, lane, record))
