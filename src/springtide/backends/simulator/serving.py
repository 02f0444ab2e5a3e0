"""The tuple model: each replica serves its own queue row by row, as Storm does in the papers."""

from __future__ import annotations

import math

from springtide.backends.simulator.arrays import SHARED
from springtide.backends.simulator.compiling import compiled, inlined
from springtide.backends.simulator.flow import output, take


@inlined
def serve(sim, rng, step, i):  # type: ignore[no-untyped-def]
    """Every replica works on its own lanes, in proportion to what waits in each."""
    lanes, replicas = sim.lanes, sim.replicas
    op = sim.operators[i]
    middle = (step + 0.5) * sim.world[0].step_s
    if op.paused_until_s > middle:
        return
    service = op.service_s
    first_replica = op.replica_first
    after_replica = first_replica + op.replica_count
    first_lane = op.lane_first
    if op.grouping == SHARED:
        if lanes[first_lane].rows > 0.0 and lanes[first_lane].paused_until_s <= middle:
            rows = _serve_shared(sim, rng, i, lanes[first_lane].rows, middle)
            taken = take(sim, i, first_lane, rows, middle)
            lanes[first_lane].busy_s += taken * service
        return
    behind = _gather(sim, step, i, middle)
    for r in range(first_replica, after_replica):
        waiting = replicas[r].work
        if waiting > 0.0:
            host = replicas[r].host
            rows = _granted(sim, rng, i, host, waiting, service)
            replicas[r].busy_s += rows * service
            _use_host(sim, i, host, rows, service)
            replicas[r].work = rows / waiting
            if rows < waiting:
                behind += 1
    if behind == 0:
        _empty_lanes(sim, i, middle)
        return
    _work_off(sim, i, middle)


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
    service = op.service_s
    first, after = op.replica_first, op.replica_first + op.replica_count
    ready = 0
    for r in range(first, after):
        if replicas[r].paused_until_s <= middle:
            ready += 1
    busy = int(min(ready, math.ceil(waiting)))
    begun = 0
    served = 0.0
    for r in range(first, after):
        if begun == busy:
            break
        if replicas[r].paused_until_s > middle:
            continue
        begun += 1
        host = replicas[r].host
        rows = _granted(sim, rng, i, host, waiting / busy, service)
        replicas[r].busy_s += rows * service
        _use_host(sim, i, host, rows, service)
        served += rows
    return min(waiting, served)


@inlined
def _granted(sim, rng, i, host, waiting, service):  # type: ignore[no-untyped-def]
    """How many of the waiting rows a replica gets done in this step, by core time and by network."""
    hosts = sim.hosts
    world = sim.world[0]
    if host < 0:
        return 0.0
    wanted_s = min(waiting * service, world.step_s)
    per_row = sim.bytes_per_row[i, host]
    # Whoever waits for the network leaves the cores to the others.
    hosts[host].want_s += wanted_s * hosts[host].network_scale if per_row > 0.0 else wanted_s
    scale = hosts[host].scale
    if world.exponential:
        # While a replica with exponential service times is busy, completions are a Poisson process.
        rows = min(waiting, float(rng.poisson(world.step_s * scale / service)))
    else:
        rows = min(wanted_s * scale, hosts[host].left_s) / service
    if per_row > 0.0:
        hosts[host].network_want += rows * per_row
        rows = min(rows * hosts[host].network_scale, hosts[host].network_left / per_row)
    return max(0.0, rows)


@inlined
def _use_host(sim, i, host, rows, service):  # type: ignore[no-untyped-def]
    hosts = sim.hosts
    if rows > 0.0:
        hosts[host].busy_s += rows * service
        hosts[host].bytes += rows * sim.bytes_per_row[i, host]
        hosts[host].left_s = max(0.0, hosts[host].left_s - rows * service)
        hosts[host].network_left = max(0.0, hosts[host].network_left - rows * sim.bytes_per_row[i, host])
