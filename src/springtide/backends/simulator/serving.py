"""The tuple model: each replica serves its own queue row by row, as Storm does in the papers."""

from __future__ import annotations

import math

from springtide.backends.simulator.arrays import SHARED
from springtide.backends.simulator.compiling import compiled, inlined
from springtide.backends.simulator.flow import output, take

_ROUNDING = 1 + 1e-12  # a host that is wanted to the last of its cores is not overloaded


@inlined
def serve(sim, rng, step, i):  # type: ignore[no-untyped-def]
    """Every replica works on its own lanes, in proportion to what waits in each."""
    lanes, replicas = sim.lanes, sim.replicas
    op = sim.operators[i]
    middle = (step + 0.5) * sim.world[0].step_s
    if op.paused_until_s > middle:
        _want_nothing(sim, i)
        return
    service = op.service_s
    first_lane = op.lane_first
    if op.grouping == SHARED:
        if lanes[first_lane].rows > 0.0 and lanes[first_lane].paused_until_s <= middle:
            rows = _serve_shared(sim, rng, i, lanes[first_lane].rows, middle)
            taken = take(sim, i, first_lane, rows, middle)
            lanes[first_lane].busy_s += taken * service
        else:
            _want_nothing(sim, i)
        return
    behind = _gather(sim, step, i, middle)
    _share_cores(sim, i)
    for r in range(op.replica_first, op.replica_first + op.replica_count):
        waiting = replicas[r].work
        if waiting > 0.0:
            rows = _granted(sim, rng, i, r, waiting)
            replicas[r].work = rows / waiting
            if rows < waiting:
                behind += 1
    if behind == 0:
        _empty_lanes(sim, i, middle)
        return
    _work_off(sim, i, middle)


@inlined
def _want_nothing(sim, i):  # type: ignore[no-untyped-def]
    """Leave to the others what the operator wanted in the step before."""
    hosts, replicas = sim.hosts, sim.replicas
    op = sim.operators[i]
    for r in range(op.replica_first, op.replica_first + op.replica_count):
        if replicas[r].host >= 0:
            hosts[replicas[r].host].later_s -= replicas[r].want_s
        replicas[r].want_s = 0.0


@inlined
def _share_cores(sim, i):  # type: ignore[no-untyped-def]
    """Divide what is left of each host by what is wanted of it: by the operator at hand now, by those behind it before.

    What waits for each replica is its `work`. All of them are served at the same pace, whatever their order; and what they
    want now counts, because a pace that is a step old makes those who come first take all there is when much comes in, and
    leaves cores idle when little does.
    """
    hosts, replicas = sim.hosts, sim.replicas
    op = sim.operators[i]
    step_s = sim.world[0].step_s
    after = op.replica_first + op.replica_count
    _want_nothing(sim, i)
    for r in range(op.replica_first, after):
        if replicas[r].host >= 0:
            hosts[replicas[r].host].here_s = 0.0
    for r in range(op.replica_first, after):
        host = replicas[r].host
        if host >= 0 and replicas[r].work > 0.0:
            wanted_s = min(replicas[r].work * op.service_s, step_s)
            # Whoever waits for the network leaves the cores to the others.
            replicas[r].want_s = wanted_s * hosts[host].network_scale if sim.bytes_per_row[i, host] > 0.0 else wanted_s
            hosts[host].here_s += replicas[r].want_s
            hosts[host].want_s += replicas[r].want_s
    for r in range(op.replica_first, after):
        host = replicas[r].host
        if host >= 0:
            wanted_s = hosts[host].here_s + max(0.0, hosts[host].later_s)
            left_s = hosts[host].left_s
            hosts[host].scale = left_s / wanted_s if wanted_s > left_s * _ROUNDING else 1.0


@compiled
def _work_off(sim, i, middle):  # type: ignore[no-untyped-def]
    """Take from each lane the part of its rows that its replica gets done."""
    lanes, replicas = sim.lanes, sim.replicas
    op = sim.operators[i]
    for lane in range(op.lane_first, op.lane_after):
        if lanes[lane].rows > 0.0 and lanes[lane].paused_until_s <= middle:
            part = replicas[lanes[lane].replica].work
            if part > 0.0:
                taken = take(sim, i, lane, lanes[lane].rows * part, middle)
                lanes[lane].busy_s += taken * op.service_s


@inlined
def _gather(sim, step, i, middle):  # type: ignore[no-untyped-def]
    """Sum up each replica's waiting rows; returns how many lanes hold rows of earlier steps, or are paused."""
    lanes, replicas = sim.lanes, sim.replicas
    op = sim.operators[i]
    newest = op.record_next - 1
    behind = 0
    for r in range(op.replica_first, op.replica_first + op.replica_count):
        replicas[r].work = 0.0
    for lane in range(op.lane_first, op.lane_after):
        rows = lanes[lane].rows
        if rows > 0.0:
            if lanes[lane].paused_until_s > middle:
                behind += 1
                continue
            replicas[lanes[lane].replica].work += rows
            if lanes[lane].head != newest or lanes[lane].done > 0.0:
                behind += 1
    if sim.records[i, newest & (sim.records.shape[1] - 1)].step != step:
        behind += 1  # other lanes may have served their share of the newest record in its own step
    return behind


@inlined
def _empty_lanes(sim, i, leaving):  # type: ignore[no-untyped-def]
    """The usual case, done at once: everything that waits came in this step, and all of it is done in it."""
    lanes = sim.lanes
    op = sim.operators[i]
    total = 0.0
    for lane in range(op.lane_first, op.lane_after):
        rows = lanes[lane].rows
        total += rows
        lanes[lane].busy_s += rows * op.service_s
        lanes[lane].rows = 0.0
    if total > 0.0:
        output(sim, i, (op.record_next - 1) & (sim.records.shape[1] - 1), 0.0, 1.0, 1.0, leaving)
    op.processed += total
    op.backlog = 0.0


@compiled
def _serve_shared(sim, rng, i, waiting, middle):  # type: ignore[no-untyped-def]
    """All replicas take from one queue, and no more of them are busy than there are rows; returns the rows done."""
    replicas = sim.replicas
    op = sim.operators[i]
    first, after = op.replica_first, op.replica_first + op.replica_count
    ready = 0
    for r in range(first, after):
        if replicas[r].paused_until_s <= middle:
            ready += 1
    busy = int(min(ready, math.ceil(waiting)))
    begun = 0
    for r in range(first, after):
        replicas[r].work = 0.0
        if begun < busy and replicas[r].paused_until_s <= middle:
            replicas[r].work = waiting / busy
            begun += 1
    _share_cores(sim, i)
    served = 0.0
    for r in range(first, after):
        if replicas[r].work > 0.0:
            served += _granted(sim, rng, i, r, replicas[r].work)
    return min(waiting, served)


@inlined
def _granted(sim, rng, i, r, waiting):  # type: ignore[no-untyped-def]
    """How many of the waiting rows a replica gets done in this step, by core time and by network; they are done by that."""
    hosts, replicas = sim.hosts, sim.replicas
    world = sim.world[0]
    service = sim.operators[i].service_s
    host = replicas[r].host
    if host < 0:
        return 0.0
    per_row = sim.bytes_per_row[i, host]
    scale = hosts[host].scale
    if world.exponential:
        # While a replica with exponential service times is busy, completions are a Poisson process.
        rows = min(waiting, float(rng.poisson(world.step_s * scale / service)))
    else:
        rows = min(waiting, world.step_s / service) * scale
    if per_row > 0.0:
        hosts[host].network_want += rows * per_row
        rows = max(0.0, min(rows * hosts[host].network_scale, hosts[host].network_left / per_row))
        hosts[host].network_left = max(0.0, hosts[host].network_left - rows * per_row)
    replicas[r].busy_s += rows * service
    hosts[host].busy_s += rows * service
    hosts[host].bytes += rows * per_row
    # What was given, not what was made of it: with exponential service a single row may take longer than many steps.
    hosts[host].left_s = max(0.0, hosts[host].left_s - replicas[r].want_s * scale)
    return rows
