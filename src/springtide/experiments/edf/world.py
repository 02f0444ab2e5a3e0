"""The paper's setting: the taxi application, five workers, two days of taxi rides in 75 minutes, and what a change costs.

The text tells the operators, the hosts, the intervals, the thresholds and the highest rate. It does not tell how long a row
takes in an operator, how long a reconfiguration stops the application, or how fast the two days were replayed. What is guessed
here is guessed from what the text does tell:

* Replay: two days in 4,500 s, because then the second evening's peak is where the text has it, at around 4000 s.
* A stop: the text names five reconfigurations with beta = 0.75 and 1.7 % of downtime, which makes 15 s for each.
* Service times: one replica for each operator is enough at quiet times, and there is a bottleneck. With everything accepted the
  downtime is that of about 19 reconfigurations, so other operators must have asked for replicas at the peaks, too.
* A hop from host to host, Storm's queues included, takes 8 ms: then the response time is above 100 ms for much of the day and
  below at night, as it is in the text with beta = 0.5, where it often rises above and tokens are lacking all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from springtide.backends.simulator.settings import Activation, Arrivals, ServiceTimes, SimulatorSettings
from springtide.errors import SpringtideError
from springtide.experiments.edf import paper
from springtide.model.allocation import Allocation, HostType, Pool, new_host_names, spread
from springtide.model.application import SLO, Application, Edge, Grouping, KeyDistribution, Operator
from springtide.workload.generators import day_cycle
from springtide.workload.recordings import data_folder, recording_in
from springtide.workload.traces import Trace

REPLAY_S = 4500.0
STOP_S = 15.0
BOTTLENECK = "count-by-window"
BOTTLENECK_S = 0.0045
STEP_S = 0.005
HOP_S = 0.008
PEAK_REPLICAS = {
    "parser": 2,
    "compute-route-id": 2,
    BOTTLENECK: 3,
    "partial-rank": 2,
}  # as the local policy wants at 300 rows/s
FIRST_DAY = "2014-07-01"
PERCENTILE = 0.99  # R_max is the worst delay: of all but one row in a hundred

_DAY_S = 86_400.0
_DAYS = 2
_RECORDING = "nab-taxi"
_HALF_AN_HOUR_S = 1800.0

# Of the 10,004 trips that were recorded in the first hour of 2013, as the operators of `applications.taxi_routes` see them.
_VALID, _IN_AREA = 0.98, 0.9998
_TICKS = 1 / 180  # one for each minute of drop-offs
_COUNT_CHANGES = 1.24  # counts that rise or fall with a trip
_TOP_CHANGES = 0.105
_ROUTES, _ZIPF = 6_806, 0.28
_SHARDS, _PARTS = 32, 4
_STATE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the text leaves open, and what differs between experiments."""

    restarts: bool = True
    stop_s: float = STOP_S
    bottleneck_s: float = BOTTLENECK_S
    replay_s: float = REPLAY_S
    hop_s: float = HOP_S
    first_day: str = FIRST_DAY

    def settings(self) -> SimulatorSettings:
        return SimulatorSettings(
            step_s=STEP_S,
            interval_s=paper.INTERVAL_S,
            arrivals=Arrivals.POISSON,
            service_times=ServiceTimes.EXPONENTIAL,
            activation=Activation.RESTART if self.restarts else Activation.POOL,
            restart_s=self.stop_s,
            network_delay_s=self.hop_s,
        )


def application(bottleneck_s: float = BOTTLENECK_S) -> Application:
    """The DAG of Figure 3. Shares of rows and the routes' frequencies are those of the recorded trips of 2013-01-01."""
    return Application(
        name="taxi-routes",
        operators=(
            _single("data-source", 0.002),
            _stateless("parser", 0.003),
            _stateless("filter-by-coordinates", 0.002),
            _stateless("compute-route-id", 0.0025),
            _single("metronome", 0.002),
            Operator(
                name=BOTTLENECK,
                service_time_s=bottleneck_s,
                shards=_SHARDS,
                state_bytes_per_shard=_STATE_BYTES,
                keys=KeyDistribution(keys=_ROUTES, zipf=_ZIPF),
            ),
            Operator(name="partial-rank", service_time_s=0.002, shards=_PARTS, state_bytes_per_shard=_STATE_BYTES),
            _single("global-rank", 0.002),
        ),
        edges=(
            Edge(upstream="source", downstream="data-source"),
            Edge(upstream="data-source", downstream="parser"),
            Edge(upstream="parser", downstream="filter-by-coordinates", selectivity=_VALID),
            Edge(upstream="filter-by-coordinates", downstream="compute-route-id", selectivity=_IN_AREA),
            Edge(upstream="filter-by-coordinates", downstream="metronome", selectivity=_TICKS),
            Edge(upstream="metronome", downstream=BOTTLENECK),
            Edge(upstream="compute-route-id", downstream=BOTTLENECK),
            Edge(upstream=BOTTLENECK, downstream="partial-rank", selectivity=_COUNT_CHANGES),
            Edge(upstream="partial-rank", downstream="global-rank", selectivity=_TOP_CHANGES),
        ),
        slo=SLO(latency_s=paper.R_MAX_S, percentile=PERCENTILE),
    )


def _stateless(name: str, service_time_s: float) -> Operator:
    return Operator(name=name, service_time_s=service_time_s, grouping=Grouping.SHUFFLE)


def _single(name: str, service_time_s: float) -> Operator:
    """An operator that reads one source, keeps one clock or has the last word: it cannot have a second replica."""
    return Operator(name=name, service_time_s=service_time_s, grouping=Grouping.SHUFFLE, max_replicas=1)


def pool() -> Pool:
    """Five workers that all run already: one that is not used costs nothing, and is there at once when it is."""
    host = HostType(cores=paper.WORKER_CORES, memory_bytes=paper.WORKER_MEMORY_BYTES, start_s=0.0, release_s=0.0)
    return Pool(host=host, min_hosts=1, max_hosts=paper.WORKERS)


def start(app: Application, replicas: Mapping[str, int]) -> Allocation:
    """So many replicas, one of each operator that is not named, dealt over the five workers."""
    return spread(app, new_host_names(frozenset(), paper.WORKERS), replicas)


def trace(replay_s: float = REPLAY_S, first_day: str = FIRST_DAY) -> Trace:
    """Two days of taxi rides that last `replay_s`, and reach 300 rows/s at their busiest."""
    days = _two_days(datetime.fromisoformat(first_day))
    faster = replace(days, step_s=days.step_s * replay_s / days.duration_s)
    return faster.scaled_to_peak(paper.PEAK_ROWS_PER_S)


def _two_days(first: datetime) -> Trace:
    try:
        recorded = recording_in(data_folder(), _RECORDING).read(data_folder())
    except SpringtideError:
        return replace(day_cycle(seed=0, days=_DAYS, step_s=_HALF_AN_HOUR_S), name="made day-cycle")
    assert recorded.start is not None
    begins_s = (first - datetime.fromisoformat(recorded.start).replace(tzinfo=None)).total_seconds()
    return recorded.cut(begins_s, begins_s + _DAYS * _DAY_S)
