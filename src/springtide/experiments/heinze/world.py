"""The setting of the paper's section V: three days of ticks, 35 continuous queries, and up to ten hosts.

Rules: a day is replayed in an hour, whole, with what each sector brought in each of its minutes. Without the recordings
every day is made from a seed, with the same shape; `Day.origin` says which it is. What the paper does not say is chosen
here, and nowhere else, and the introduction of the study says so.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from springtide.applications.stock_ticks.bars import MinuteBars, made_bars, recorded_bars
from springtide.applications.stock_ticks.queries import ContinuousQuery, drawn_queries
from springtide.backends.simulator.settings import Arrivals, Moves, SimulatorSettings
from springtide.errors import InvalidValue, nearest
from springtide.model.allocation import Allocation, HostType, Pool, new_host_names, spread
from springtide.model.application import SLO, Application, Edge, Operator, Source
from springtide.model.observation import FloatArray
from springtide.workload.recordings import RECORDINGS, data_folder
from springtide.workload.traces import Trace

# What the paper says.
DAYS = ("Day1", "Day2", "Day3")
QUERIES = 35
MOST_HOSTS = 10
RUN_S = 3600.0  # "at least an hour"
INTERVAL_S = 5.0  # an hour has 720 of them, "about 700 measurement points"
TARGET = 0.6
OBJECTIVE_S = 1.85  # the 90th percentile of local thresholds; only tide is told

# 0.05 more utilisation than 0.52 saves 0.5 hosts, so there were 0.5 * 0.57 / 0.05 = 5.7 of them, with this to do.
MEAN_LOAD_HOSTS = 0.52 * 5.7

# What it does not say.
SECTORS = 10
SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 10, 300
WORK_PER_DOUBLING = 0.3  # of a window's length, as a share of what a tick takes in the shortest
TICK_BYTES = 64
HOST_CORES = 1
HOST_START_S, HOST_RELEASE_S = 5.0, 1.0  # "within seconds"
MOVE_S = 1.0
STEP_S = 0.2

_RECORDED = {"Day1": "xetra-2017", "Day2": "xetra-2018"}
_FIRST_S = 60.0  # by which the first hosts are chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Day:
    """Ticks by sector and minute, from the first minute with a trade to the last."""

    name: str
    origin: str
    ticks: FloatArray

    @property
    def minutes(self) -> int:
        return int(self.ticks.shape[1])

    @property
    def minute_s(self) -> float:
        """How long a minute of the day lasts in the replay."""
        return RUN_S / self.minutes

    def rows_per_step(self, sectors: tuple[int, ...], step_s: float) -> FloatArray:
        """The ticks of some sectors in each step of the replay: one row of the array for each sector."""
        traces = [Trace(name=self.name, step_s=self.minute_s, counts=self.ticks[sector]) for sector in sectors]
        return np.array([trace.resampled(step_s).counts for trace in traces])


@cache
def day(name: str) -> Day:
    """A day of the three, recorded or made."""
    if name not in DAYS:
        raise InvalidValue(f"there is no day {name!r}; {nearest(name, DAYS)}")
    seed = DAYS.index(name) + 1
    recording = RECORDINGS.get(_RECORDED.get(name, ""))
    file = data_folder() / recording.file if recording else None
    if recording is None or file is None or not file.is_file():
        return _day_of(name, f"made from seed {seed}", made_bars(seed))
    return _day_of(name, f"recorded: {recording.name}", recorded_bars(file))


def _day_of(name: str, origin: str, bars: MinuteBars) -> Day:
    """The exchange's data have no sectors: a company's is drawn by its name, so that it is the same on all days."""
    sector = np.array([zlib.crc32(company.encode()) % SECTORS for company in bars.names])
    ticks = np.zeros((SECTORS, int(bars.minute.max()) - bars.first_minute + 1))
    np.add.at(ticks, (sector[bars.company], bars.minute - bars.first_minute), bars.trades)
    return Day(name=name, origin=origin, ticks=ticks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """All that a run needs but its policy."""

    application: Application
    pool: Pool
    settings: SimulatorSettings
    rows: FloatArray
    start: Allocation


def world(day_name: str, seed: int) -> World:
    """The queries that the seed draws, over the ticks of a day."""
    queries = drawn_queries(QUERIES, sectors=SECTORS, shortest_s=SHORTEST_WINDOW_S, longest_s=LONGEST_WINDOW_S, seed=seed)
    application = application_of(queries)
    sectors = tuple(int(source.name.removeprefix("sector-")) for source in application.sources)
    rows = day(day_name).rows_per_step(sectors, STEP_S)
    pool = Pool(
        host=HostType(cores=HOST_CORES, start_s=HOST_START_S, release_s=HOST_RELEASE_S), min_hosts=1, max_hosts=MOST_HOSTS
    )
    return World(
        application=application,
        pool=pool,
        settings=SimulatorSettings(
            step_s=STEP_S, interval_s=INTERVAL_S, arrivals=Arrivals.POISSON, moves=Moves(synchronisation_s=MOVE_S)
        ),
        rows=rows,
        start=_first_allocation(application, pool, rows),
    )


def application_of(queries: tuple[ContinuousQuery, ...]) -> Application:
    """One operator for each query, moved as a whole with its window's state; one source for each sector that is asked for."""
    first = day(DAYS[0])
    rates_per_s = first.ticks.sum(axis=1) / RUN_S
    relative = {query: _work_of_window(query.window_s) for query in queries}
    # One factor for all queries, from the first day, makes the work what it was: other days have their own.
    tick_s = MEAN_LOAD_HOSTS * HOST_CORES / sum(rates_per_s[query.sector] * work for query, work in relative.items())
    names = {query: f"query-{query.number:02d}" for query in queries}
    operators = tuple(
        Operator(
            name=names[query],
            service_time_s=tick_s * work,
            shards=1,
            state_bytes_per_shard=round(TICK_BYTES * rates_per_s[query.sector] * query.window_s),
            row_bytes=TICK_BYTES,
        )
        for query, work in relative.items()
    )
    return Application(
        name="stock-ticks",
        operators=operators,
        sources=tuple(Source(name=f"sector-{sector}") for sector in sorted({query.sector for query in queries})),
        edges=tuple(Edge(upstream=f"sector-{query.sector}", downstream=names[query]) for query in queries),
        slo=SLO(latency_s=OBJECTIVE_S, percentile=0.9),
    )


def _work_of_window(window_s: int) -> float:
    return 1 + WORK_PER_DOUBLING * math.log2(window_s / SHORTEST_WINDOW_S)


def _first_allocation(application: Application, pool: Pool, rows: FloatArray) -> Allocation:
    """What the first minute needs at the target utilisation, dealt in turn."""
    first_per_s = rows[:, : round(_FIRST_S / STEP_S)].sum(axis=1) / _FIRST_S
    cores = sum(
        float(rate) * operator.service_time_s
        for source, rate in zip(application.sources, first_per_s, strict=True)
        for operator in _fed_by(application, source)
    )
    hosts = math.ceil(cores / (TARGET * pool.host.cores))
    return spread(application, new_host_names(frozenset(), min(max(hosts, pool.min_hosts), pool.max_hosts)))


def _fed_by(application: Application, source: Source) -> Iterator[Operator]:
    return (application.operator(edge.downstream) for edge in application.outputs(source.name))
