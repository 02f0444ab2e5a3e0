"""The simulator's inner loop, compiled: what happens in each step of time to every lane of every operator.

Rules. Operators are visited in topological order, so a row may pass the whole DAG within one step. Nothing is
allocated here: when a ring is full, the kernel stops before the operator it cannot take on, says which ring, and is
called again with a larger one. All latency a row collects outside queues (its own service, the network) is taken off
its entry time, so that at any moment its age is the present minus its entry time.

The loops are compiled because the steps depend on one another: hosts are shared between operators, so the time axis
cannot be vectorised, and a numpy call per operator and step would cost more than the step itself.
"""

from __future__ import annotations

import math

from springtide.backends.simulator.arrays import LOAD_BALANCED
from springtide.backends.simulator.batching import run_batches
from springtide.backends.simulator.borrowing import borrowed
from springtide.backends.simulator.compiling import compiled, inlined
from springtide.backends.simulator.dropping import drop_late, drop_overflow
from springtide.backends.simulator.flow import NO_ROWS, begin_output
from springtide.backends.simulator.serving import serve
from springtide.monitor.latency_histogram import bin_of

_bin_of = inlined(bin_of)

DONE, RECORDS_FULL, ENTRIES_FULL, EMITTED_FULL = range(4)
NOT_BEGUN = -1  # instead of an operator to go on with: the step is a new one


@compiled
def run_steps(places, source_rows, first_step, first_operator, last_step, rng):  # type: ignore[no-untyped-def]
    """Simulate steps `first_step` to `last_step`; returns why it stopped, and the step and operator to go on with.

    `places` tells where the arrays of a `Simulation` lie: see `borrowing`.
    """
    sim = borrowed(places)
    totals = sim.totals[0]
    world = sim.world[0]
    for step in range(first_step, last_step):
        start = first_operator if step == first_step else NOT_BEGUN
        if start == NOT_BEGUN:
            _share_hosts(sim)
            totals.emitted = 0
        for i in range(max(0, start), len(sim.operators)):
            full = _which_ring_is_full(sim, i)
            if full != DONE:
                return full, step, i
            _receive(sim, source_rows, step, i)
            begin_output(sim)
            if world.micro_batch:
                run_batches(sim, step, i)
            else:
                if world.timeout_s < math.inf:
                    drop_late(sim, i, (step + 0.5) * world.step_s)
                serve(sim, rng, step, i)
                if sim.operators[i].queue_rows < math.inf:
                    drop_overflow(sim, i)
            _send(sim, i)
            if sim.operators[i].backlog > 0.0:
                _settle(sim, i)
            else:
                sim.operators[i].record_first = sim.operators[i].record_next
    return DONE, last_step, NOT_BEGUN


@inlined
def _which_ring_is_full(sim, i):  # type: ignore[no-untyped-def]
    operators, edges, emitted = sim.operators, sim.edges, sim.emitted
    op = sim.operators[i]
    totals = sim.totals[0]
    records = sim.records.shape[1]
    entries = sim.entries.shape[1]
    arriving = 0
    for e in range(op.edge_first, op.edge_after):
        upstream = edges[e].upstream
        arriving += operators[upstream].emitted_count if upstream >= 0 else 1
    if op.record_next - op.record_first + 1 > records:
        return RECORDS_FULL
    first = op.entry_next
    if op.record_next > op.record_first:
        first = sim.records[i, op.record_first & (records - 1)].entry
    waiting = op.entry_next - first
    if waiting + arriving > entries:
        return ENTRIES_FULL
    if totals.emitted + waiting + arriving > len(emitted):
        return EMITTED_FULL
    return DONE


@inlined
def _share_hosts(sim):  # type: ignore[no-untyped-def]
    """Begin a step: all of a host is left, and who is still to be served wants what it wanted in the step before.

    A link is divided by what was wanted of it in the step before.
    """
    hosts = sim.hosts
    world = sim.world[0]
    for h in range(len(hosts)):
        hosts[h].left_s = hosts[h].cores * world.step_s
        hosts[h].later_s = hosts[h].want_s
        hosts[h].want_s = 0.0
        capacity = hosts[h].bandwidth * world.step_s
        want = hosts[h].network_want
        hosts[h].network_scale = capacity / want if want > capacity else 1.0
        hosts[h].network_left = capacity
        hosts[h].network_want = 0.0


@inlined
def _receive(sim, source_rows, step, i):  # type: ignore[no-untyped-def]
    """Take in what arrives in this step as one record.

    A bounded queue turns rows away after the step, when it is known how many of them were served in it; micro-batches
    hold on to what they have taken, so there rows are turned away as they come.
    """
    operators, edges = sim.operators, sim.edges
    op = sim.operators[i]
    arriving = 0.0
    for e in range(op.edge_first, op.edge_after):
        upstream = edges[e].upstream
        rows = operators[upstream].emitted_rows if upstream >= 0 else source_rows[-1 - upstream, step]
        arriving += rows * edges[e].selectivity
    if arriving <= 0.0:
        return
    op.offered += arriving
    accepted = min(arriving, max(0.0, op.queue_rows - op.backlog)) if sim.world[0].micro_batch else arriving
    op.dropped_full += arriving - accepted
    if accepted <= 0.0:
        return
    _append_record(sim, source_rows, step, i, accepted, accepted / arriving)
    _fill_lanes(sim, i, accepted)


@inlined
def _fill_lanes(sim, i, accepted):  # type: ignore[no-untyped-def]
    """Give every lane its share of the newest record; an empty lane begins with it."""
    lanes = sim.lanes
    op = sim.operators[i]
    newest = op.record_next - 1
    record = newest & (sim.records.shape[1] - 1)
    balanced = op.grouping == LOAD_BALANCED
    if balanced:
        _share_by_level(sim, i, record, accepted)
    epoch = op.epoch & (sim.share.shape[1] - 1)
    # A micro-batch takes from all lanes alike, so there they begin together or not at all.
    together = sim.world[0].micro_batch == 1
    begin = together and op.backlog <= NO_ROWS * (op.lane_after - op.lane_first) and op.batch_active == 0
    for lane in range(op.lane_first, op.lane_after):
        if begin or (not together and lanes[lane].rows <= NO_ROWS):
            lanes[lane].head = newest
            lanes[lane].done = 0.0
        share = sim.level_share[op.level_first + lane - op.lane_first, record] if balanced else sim.share[lane, epoch]
        lanes[lane].rows += accepted * share
        lanes[lane].arrived += accepted * share
    op.backlog += accepted


@inlined
def _append_record(sim, source_rows, step, i, accepted, part):  # type: ignore[no-untyped-def]
    operators, edges, emitted = sim.operators, sim.edges, sim.emitted
    op = sim.operators[i]
    world = sim.world[0]
    entries = sim.entries.shape[1]
    record = op.record_next & (sim.records.shape[1] - 1)
    first = op.entry_next
    at = first
    ready = -1.0
    through_step = False
    for e in range(op.edge_first, op.edge_after):
        upstream = edges[e].upstream
        selectivity = edges[e].selectivity
        if upstream < 0:
            rows = source_rows[-1 - upstream, step] * selectivity * part
            if rows > 0.0:
                slot = at & (entries - 1)
                sim.entries[i, slot].rows = rows
                sim.entries[i, slot].time_s = (step + 0.5) * world.step_s - edges[e].delay_s
                sim.entries[i, slot].width_s = world.step_s
                sim.entries[i, slot].key = step
                at += 1
                through_step = True
            continue
        if operators[upstream].emitted_count > 0:
            ready = max(ready, operators[upstream].emitted_ready_s)
        for k in range(
            operators[upstream].emitted_first, operators[upstream].emitted_first + operators[upstream].emitted_count
        ):
            rows = emitted[k].rows * selectivity * part
            if rows > 0.0:
                slot = at & (entries - 1)
                sim.entries[i, slot].rows = rows
                sim.entries[i, slot].time_s = emitted[k].time_s - edges[e].delay_s
                sim.entries[i, slot].width_s = emitted[k].width_s
                sim.entries[i, slot].key = emitted[k].key
                at += 1
    if through_step and ready >= 0.0:
        ready = (step + 1) * world.step_s  # by then all of them are there, batches and single rows alike
    op.entry_next = at
    sim.records[i, record].rows = accepted
    sim.records[i, record].epoch = op.epoch
    sim.records[i, record].step = step
    sim.records[i, record].ready_s = ready
    sim.records[i, record].entry = first
    sim.records[i, record].entries = at - first
    op.record_next += 1


@compiled
def _share_by_level(sim, i, record, rows):  # type: ignore[no-untyped-def]
    """PSPS, Algorithm 1, for many rows at once: fill the least utilised replicas up first; beyond U = 1, in turn."""
    replicas, levels = sim.replicas, sim.levels
    op = sim.operators[i]
    world = sim.world[0]
    first = op.level_first
    replicas = op.replica_count
    for j in range(first, op.level_after):
        sim.level_share[j, record] = 0.0
    per_row = op.service_s / world.interval_s  # et / td, line 10
    left = rows * per_row
    for _ in range(replicas):
        lowest = 1.0
        for j in range(first, first + replicas):
            lowest = min(lowest, levels[j])
        if lowest >= 1.0 or left <= 0.0:
            break
        above = 1.0
        at_lowest = 0
        for j in range(first, first + replicas):
            if levels[j] <= lowest:
                at_lowest += 1
            else:
                above = min(above, levels[j])
        rise = min(above - lowest, left / at_lowest)
        for j in range(first, first + replicas):
            if levels[j] <= lowest:
                levels[j] = above if rise >= above - lowest else lowest + rise
                sim.level_share[j, record] += rise / (rows * per_row)
        left -= rise * at_lowest
    if left > 0.0:
        for j in range(first, first + replicas):
            sim.level_share[j, record] += left / (rows * per_row) / replicas  # line 8


@inlined
def _send(sim, i):  # type: ignore[no-untyped-def]
    """Hand what leaves the operator on to the next ones, or count its latency where the application ends."""
    emitted, slots = sim.emitted, sim.slots
    op = sim.operators[i]
    totals = sim.totals[0]
    world = sim.world[0]
    mask = len(slots) - 1
    at = totals.emitted
    op.emitted_first = at
    total = 0.0
    # A batch's rows carry their true end of service already; a tuple's service is part of the step only in part.
    extra = 0.0 if world.micro_batch else op.beyond_step_s
    for n in range(totals.touched):
        key = slots[n].touched
        slot = key & mask
        rows = slots[slot].rows
        time = slots[slot].moment / rows - extra
        leaving = slots[slot].leaving / rows
        width = slots[slot].high - slots[slot].low
        op.age_s += rows * (leaving - time)
        total += rows
        if op.sink:
            _count_latency(sim, leaving - time, rows, 0.0 if world.micro_batch else abs(world.step_s - width))
        else:
            emitted[at].rows = rows
            emitted[at].time_s = time
            emitted[at].width_s = width
            emitted[at].key = key
            at += 1
    totals.emitted = at
    op.emitted_count = at - op.emitted_first
    op.emitted_rows = total
    op.emitted_ready_s = op.batch_committed_s if world.micro_batch else -1.0


@inlined
def _count_latency(sim, latency, rows, spread):  # type: ignore[no-untyped-def]
    totals = sim.totals[0]
    world = sim.world[0]
    totals.latency_s += rows * latency
    totals.latency_max_s = max(totals.latency_max_s, latency)
    points = 4 if spread > 0.02 * latency else 1
    for n in range(points):
        value = max(0.0, latency + spread * ((n + 0.5) / points - 0.5))
        if value > world.slo_s:
            totals.late_rows += rows / points
        sim.latency_rows[_bin_of(value)] += rows / points


@inlined
def _settle(sim, i):  # type: ignore[no-untyped-def]
    """Add up what still waits, and free the records that nobody needs any more."""
    lanes = sim.lanes
    op = sim.operators[i]
    oldest = op.record_next
    backlog = 0.0
    for lane in range(op.lane_first, op.lane_after):
        backlog += lanes[lane].rows
        if lanes[lane].rows > NO_ROWS:
            oldest = min(oldest, lanes[lane].head)
    op.backlog = backlog
    op.record_first = min(oldest, op.batch_head) if op.batch_active else oldest
