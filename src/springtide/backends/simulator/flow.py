"""Rows in and out of lanes: the part of the kernel that both service models share."""

from __future__ import annotations

from springtide.backends.simulator.arrays import LOAD_BALANCED
from springtide.backends.simulator.compiling import inlined

# A lane with less than this left is empty: what remains is rounding.
NO_ROWS = 1e-9


@inlined
def lane_share(sim, i, lane, record):  # type: ignore[no-untyped-def]
    """The part of a record that belongs to a lane."""
    op = sim.operators[i]
    if op.grouping == LOAD_BALANCED:
        return sim.level_share[op.level_first + lane - op.lane_first, record]
    return sim.share[lane, sim.records[i, record].epoch & (sim.share.shape[1] - 1)]


@inlined
def take(sim, i, lane, wanted, leaving):  # type: ignore[no-untyped-def]
    """Take rows out of a lane, oldest first, into the output; returns how many."""
    lanes = sim.lanes
    op = sim.operators[i]
    records = sim.records.shape[1]
    left = wanted
    head = lanes[lane].head
    done = lanes[lane].done
    while left > 0.0 and head < op.record_next:
        record = head & (records - 1)
        whole = sim.records[i, record].rows * lane_share(sim, i, lane, record)
        available = whole * (1.0 - done)
        if available <= 0.0:
            head += 1
            done = 0.0
            continue
        if left >= available * (1.0 - 1e-12):
            to, used = 1.0, available
        else:
            to, used = done + left / whole, left
        output(sim, i, record, done, to, used / sim.records[i, record].rows, leaving)
        left -= used
        done = to
        if to >= 1.0:
            head += 1
            done = 0.0
    lanes[lane].head = head
    lanes[lane].done = done
    taken = min(wanted - max(0.0, left), lanes[lane].rows)
    lanes[lane].rows -= taken
    op.processed += taken
    return taken


@inlined
def begin_output(sim):  # type: ignore[no-untyped-def]
    totals = sim.totals[0]
    totals.stamp += 1
    totals.touched = 0


@inlined
def output(sim, i, record, done, to, part, leaving):  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    """Add the stretch from `done` to `to` of a record, `part` of its rows, to what leaves at the time `leaving`."""
    slots = sim.slots
    totals = sim.totals[0]
    entries = sim.entries.shape[1]
    mask = len(slots) - 1
    stamp = totals.stamp
    begin = sim.records[i, record].entry
    offset = 0.5 * (done + to) - 0.5
    for k in range(begin, begin + sim.records[i, record].entries):
        slot = k & (entries - 1)
        rows = sim.entries[i, slot].rows * part
        if rows <= 0.0:
            continue
        width = sim.entries[i, slot].width_s
        time = sim.entries[i, slot].time_s + offset * width
        half = 0.5 * (to - done) * width
        key = sim.entries[i, slot].key
        at = key & mask
        if slots[at].stamp != stamp:
            slots[at].stamp = stamp
            slots[at].rows = rows
            slots[at].moment = rows * time
            slots[at].leaving = rows * leaving
            slots[at].low = time - half
            slots[at].high = time + half
            slots[totals.touched].touched = key
            totals.touched += 1
        else:
            slots[at].rows += rows
            slots[at].moment += rows * time
            slots[at].leaving += rows * leaving
            slots[at].low = min(slots[at].low, time - half)
            slots[at].high = max(slots[at].high, time + half)
