"""Traces of any origin made comparable: none longer than the others need, all with the same load at their busiest, and every
run begun with what its first minute needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from springtide.analyze.demand import gains
from springtide.errors import require
from springtide.model.allocation import Allocation, Pool, new_host_names, spread
from springtide.model.application import Application
from springtide.workload.traces import Trace

BUSIEST_S = 60.0  # a peak is that of a minute: a single second's is mostly chance
START_UTILISATION = 0.7

_DAY_S = 86_400.0


def with_peak(trace: Trace, longest_s: float) -> Trace:
    """No more than `longest_s` of a trace: the days up to the end of the one with the busiest minute.

    Days are counted from the trace's first step. A window of less than a day is the one of its kind that has that minute.
    """
    require(longest_s > 0, f"the longest that a trace may be must be above 0 s, not {longest_s:g}")
    if trace.duration_s <= longest_s:
        return trace
    minutes = trace.resampled(max(BUSIEST_S, trace.step_s))
    peak_s = float(np.argmax(minutes.counts)) * minutes.step_s
    unit_s = min(_DAY_S, longest_s)
    start_s = max(0.0, (math.floor(peak_s / unit_s) + 1) * unit_s - longest_s)
    return trace.cut(start_s, min(start_s + longest_s, trace.duration_s))


def cores_of(application: Application, rows_per_s: float) -> dict[str, float]:
    """The cores that each operator keeps busy when that much of a trace arrives."""
    rows = gains(application)
    return {
        operator.name: operator.service_time_s
        * sum(rows_per_s * source.share * rows[source.name][operator.name] for source in application.sources)
        for operator in application.operators
    }


def core_s_per_row(application: Application) -> float:
    """The core time that one row of a trace takes, on its way through all operators."""
    return sum(cores_of(application, 1.0).values())


def peak_cores(trace: Trace, application: Application) -> float:
    """The cores that the busiest minute keeps busy."""
    return trace.peak_rate_over(BUSIEST_S) * core_s_per_row(application)


def scaled_to_load(trace: Trace, application: Application, pool: Pool, load: float) -> Trace:
    """Scaled so that its busiest minute needs the share `load` of all cores that the pool may have."""
    require(math.isfinite(load) and load > 0, f"the load at the peak must be above 0, not {load:g}")
    require(trace.rows > 0, f"trace {trace.name!r}: it has no rows, so no factor gives it a peak; use another trace")
    require(core_s_per_row(application) > 0, f"application {application.name!r}: none of the trace's rows reaches an operator")
    return trace.scaled(load * pool.max_hosts * pool.host.cores / peak_cores(trace, application))


def first_allocation(trace: Trace, application: Application, pool: Pool) -> Allocation:
    """Hosts and replicas for the first minute, 70 % busy: no policy is judged by what it was given to begin with."""
    first_s = min(trace.duration_s, max(BUSIEST_S, trace.step_s))
    cores = cores_of(application, trace.cut(0.0, first_s).mean_rate_per_s)
    hosts = math.ceil(sum(cores.values()) / (START_UTILISATION * pool.host.cores))
    names = new_host_names(frozenset(), min(max(hosts, pool.min_hosts), pool.max_hosts))
    return spread(application, names, _replicas(cores))


def _replicas(cores: Mapping[str, float]) -> dict[str, int]:
    return {name: max(1, math.ceil(needed / START_UTILISATION)) for name, needed in cores.items()}
