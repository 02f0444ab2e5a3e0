"""Figures 10 to 12: how far one elastic executor scales with the cores it is given, on its own node and on others.

Rules. The executor has the cores of a run from its start to its end; what the policy decides is which of them serves which
shard. Rows enter at the executor's node and go on from there to its cores on other nodes. The source makes more rows than all
cores could do, and is held back by full queues and links (`backpressure`); for the latency it makes 60 % of what they could do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from springtide.backends.simulator.settings import SimulatorSettings
from springtide.experiments.elasticutor import paper, world
from springtide.experiments.elasticutor import paper_single as single
from springtide.experiments.elasticutor.backpressure import BackpressureBackend, Generator, Limits
from springtide.experiments.elasticutor.paper_single import bytes_text
from springtide.experiments.elasticutor.wording import milliseconds, thousands
from springtide.experiments.elasticutor.world import ELASTIC, TIDE
from springtide.experiments.study import Claim, Experiment, Finding, PageTable, Picture, Section, Values
from springtide.forecast.running.choosing import forecast_for
from springtide.loop import ControlLoop
from springtide.model.action import Action
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool, new_host_names
from springtide.model.application import Application, KeyDistribution, Operator
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy

APPROACHES = (ELASTIC, TIDE)
SHARDS = paper.EXECUTORS * paper.SHARDS_PER_EXECUTOR  # of an operator
CORES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUICK_CORES = (1, 8, 16, 64, 256)
TUPLE_COSTS_MS = (0.01, 0.1, 1.0, 10.0)
TUPLE_SIZES = (128, 512, 2048, 8192)
DATA_SETTINGS = (
    *((cost_ms, paper.ROW_BYTES) for cost_ms in TUPLE_COSTS_MS),
    *((paper.SERVICE_TIME_S * 1e3, size) for size in TUPLE_SIZES if size != paper.ROW_BYTES),
)
STATE_SIZES = (paper.STATE_BYTES_PER_SHARD, single.MB, single.LARGE_STATE_BYTES)
SHUFFLES_PER_MINUTE = (2, 16)

EFFICIENT = 0.75  # of what could be done: theta allows a core 1.2 times the mean, which alone is 0.83
AS_GOOD = 0.98  # of another's throughput

_CALCULATOR = "calculator"
_BALANCED_S = 6.0  # by then the first shards are balanced
_BETWEEN_SHUFFLES_S = 15.0  # half of 30 s: a minute from then on begins and ends between two shuffles


# --- one run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One executor in one workload."""

    approach: str
    cores: int
    service_time_s: float = paper.SERVICE_TIME_S
    row_bytes: int = paper.ROW_BYTES
    state_bytes: int = paper.STATE_BYTES_PER_SHARD
    shuffles_per_minute: float = 0.0
    shards: int = SHARDS

    @property
    def cores_could_do_per_s(self) -> float:
        return self.cores / self.service_time_s

    @property
    def replicas(self) -> int:
        """An executor has one for each core; tide wants two, and is not made to move half of all state to get them."""
        return self.cores if self.approach == ELASTIC else min(2 * self.cores, self.shards)

    def application(self) -> Application:
        calculator = Operator(
            name=_CALCULATOR,
            service_time_s=self.service_time_s,
            shards=self.shards,
            max_replicas=self.replicas,
            state_bytes_per_shard=self.state_bytes,
            row_bytes=self.row_bytes,
            keys=KeyDistribution(keys=paper.KEYS, zipf=paper.ZIPF, shuffles_per_minute=self.shuffles_per_minute),
        )
        return Application(name="one executor", operators=(calculator,))

    def pool(self) -> Pool:
        """Whole nodes; with fewer cores than a node has, one smaller node."""
        cores = min(self.cores, paper.CORES_PER_NODE)
        nodes = math.ceil(self.cores / cores)
        host = HostType(cores=cores, bandwidth_bytes_per_s=paper.BANDWIDTH_BYTES_PER_S)
        return Pool(host=host, min_hosts=nodes, max_hosts=nodes)

    def start(self) -> Allocation:
        """The replicas side by side, those of the executor's own node first."""
        hosts = new_host_names(frozenset(), self.pool().max_hosts)
        replica_hosts = tuple(hosts[replica * len(hosts) // self.replicas] for replica in range(self.replicas))
        routes = tuple(shard % self.replicas for shard in range(self.shards))
        return Allocation(hosts, {_CALCULATOR: OperatorAllocation(replica_hosts, routes)})

    def limits(self) -> Limits:
        """An executor has an entrance; with tide, whose replicas are not an executor's, rows go to them directly."""
        return Limits(queue_s=world.QUEUE_S, executors=1 if self.approach == ELASTIC else 0)

    def policy(self) -> AnyPolicy:
        if self.approach == ELASTIC:
            return make_policy(ELASTIC, {"executors": 1, "theta": single.THETA})
        return make_policy(TIDE, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """How long is simulated before anything counts and after that, and how finely."""

    warm_up_s: float
    window_s: float
    step_s: float = world.STEP_S


@dataclass(slots=True)
class _Window:
    """A recorder of what left the application after the warm-up."""

    backend: BackpressureBackend
    from_s: float
    rows: float = 0.0
    p99_s: list[float] = field(default_factory=list)
    moved: int = 0
    waited_before_row_s: float = 0.0

    def observation(self, observation: Observation) -> None:
        if observation.start_s < self.from_s:
            self.waited_before_row_s = self.backend.waited_row_s
            return
        self.rows += observation.latency.rows
        self.p99_s.append(observation.latency.p99_s)
        self.moved += observation.reconfigurations.get("shards_moved", 0)

    @property
    def waited_s(self) -> float:
        """The mean time that a row waited at the source."""
        return (self.backend.waited_row_s - self.waited_before_row_s) / max(self.rows, 1.0)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        """Only what came of decisions counts here."""

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        """What became of a promise is not asked here."""


def measure(setting: Setting, load: float, span: Span, seed: int) -> dict[str, float]:
    """Rows per second, and the p99 latency with the time a row waits at the source."""
    rows_per_s = load * setting.cores_could_do_per_s
    application, pool, policy = setting.application(), setting.pool(), setting.policy()
    settings = SimulatorSettings(step_s=span.step_s, interval_s=world.INTERVAL_S, moves=single.MOVES[ELASTIC])
    generator = Generator(
        rows_per_s=rows_per_s, duration_s=span.warm_up_s + span.window_s, buffer_rows=max(1.0, world.BUFFER_S * rows_per_s)
    )
    backend = BackpressureBackend(application, pool, settings, generator, setting.limits(), seed=seed, start=setting.start())
    window = _Window(backend, span.warm_up_s)
    with forecast_for(policy, world.INTERVAL_S) as forecast:
        loop = ControlLoop(application=application, pool=pool, policy=policy, interval_s=world.INTERVAL_S, forecast=forecast)
        loop.run(backend, window, backend.duration_s)
    return {
        "rows_per_s": round(window.rows / span.window_s, 3),
        "p99_s": round(float(np.mean(window.p99_s)) + window.waited_s, 6),
        "shards_moved": window.moved,
    }


# --- the runs -------------------------------------------------------------------------------------------------------


def runs(quick: bool) -> list[tuple[Values, int]]:
    """The quick variant has fewer numbers of cores, and tide with two of them only."""
    cores = QUICK_CORES if quick else CORES
    window_s = 3.0 if quick else 12.0
    found: list[tuple[Values, int]] = [
        (_data_parameters(approach, count, cost_ms, size, SHARDS, window_s), 0)
        for cost_ms, size in DATA_SETTINGS
        for approach in APPROACHES
        for count in (cores if approach == ELASTIC or not quick else (8, 256))
    ]
    found.append(
        (
            _data_parameters(
                ELASTIC, CORES[-1], paper.SERVICE_TIME_S * 1e3, paper.ROW_BYTES, paper.SHARDS_PER_EXECUTOR, window_s
            ),
            0,
        )
    )
    found += [
        (
            {
                "figure": "12",
                "approach": approach,
                "cores": count,
                "state_bytes": size,
                "shuffles_per_minute": shuffles,
                "window_s": 60.0,
            },
            0,
        )
        for shuffles in SHUFFLES_PER_MINUTE
        for size in STATE_SIZES
        for approach in APPROACHES
        for count in ((64, 256) if quick else cores[3:])
    ]
    return found


def _data_parameters(approach: str, cores: int, cost_ms: float, size: int, shards: int, window_s: float) -> Values:
    return {
        "figure": "10",
        "approach": approach,
        "cores": cores,
        "tuple_ms": cost_ms,
        "row_bytes": size,
        "shards": shards,
        "window_s": window_s,
    }


def run(parameters: Values, seed: int) -> Values:
    approach, cores = parameters["approach"], parameters["cores"]
    if parameters["figure"] == "12":
        changing = Setting(
            approach=approach,
            cores=cores,
            state_bytes=parameters["state_bytes"],
            shuffles_per_minute=parameters["shuffles_per_minute"],
        )
        return measure(changing, world.ALL_CORES, Span(warm_up_s=_BETWEEN_SHUFFLES_S, window_s=parameters["window_s"]), seed)
    steady = Setting(
        approach=approach,
        cores=cores,
        service_time_s=parameters["tuple_ms"] / 1e3,
        row_bytes=parameters["row_bytes"],
        shards=parameters["shards"],
    )
    span = Span(warm_up_s=_BALANCED_S, window_s=parameters["window_s"])
    full, part = measure(steady, world.ALL_CORES, span, seed), measure(steady, world.MOST_CORES, span, seed)
    return {"rows_per_s": full["rows_per_s"], "p99_s": part["p99_s"], "p99_load": world.MOST_CORES}


# --- the page -------------------------------------------------------------------------------------------------------

Curve = dict[int, float]  # by cores
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class _Data:
    """A setting of Figures 10 and 11: what a tuple costs and weighs."""

    approach: str
    tuple_ms: float
    row_bytes: int

    def __str__(self) -> str:
        return f"{self.tuple_ms:g} ms, {bytes_text(self.row_bytes)}"

    @property
    def intensive(self) -> bool:
        """What the paper calls data-intensive."""
        return self.tuple_ms <= 0.1 or self.row_bytes >= 2048


@dataclass(frozen=True, slots=True)
class _Change:
    """A setting of Figure 12."""

    approach: str
    shuffles_per_minute: float
    state_bytes: int

    def __str__(self) -> str:
        return f"{self.shuffles_per_minute:g} shuffles a minute, {bytes_text(self.state_bytes)}"


def sections(findings: Sequence[Finding]) -> list[Section]:
    data = [f for f in findings if f.run.parameters["figure"] == "10" and f.run.parameters["shards"] == SHARDS]
    few_shards = [f for f in findings if f.run.parameters["figure"] == "10" and f.run.parameters["shards"] != SHARDS]
    change = [f for f in findings if f.run.parameters["figure"] == "12"]
    return [_figures_10_and_11(data, few_shards), _figure_12(change)]


def could_do_per_s(cores: int, service_time_s: float) -> float:
    """What the cores could do, or less: all rows of the most frequent key are served by one core.

    >>> could_do_per_s(8, 0.001)
    8000.0
    """
    return min(cores, 1.0 / world.hottest_key_share()) / service_time_s


def efficiency(curve: Mapping[int, float], service_time_s: float) -> Curve:
    """The part of what could be done.

    >>> efficiency({1: 1000.0, 4: 2000.0}, 0.001)
    {1: 1.0, 4: 0.5}
    """
    return {cores: rows_per_s / could_do_per_s(cores, service_time_s) for cores, rows_per_s in curve.items()}


def most_efficient_cores(curve: Mapping[int, float], service_time_s: float) -> int:
    """The most cores that are used efficiently, as are all fewer ones.

    >>> most_efficient_cores({1: 1000.0, 4: 3900.0, 8: 4000.0}, 0.001)
    4
    """
    found = 0
    for cores, part in sorted(efficiency(curve, service_time_s).items()):
        if part < EFFICIENT:
            break
        found = cores
    return found


def _curves(findings: Sequence[Finding], key: Callable[[Values], Key], what: str) -> dict[Key, Curve]:
    found: dict[Key, Curve] = {}
    for finding in findings:
        found.setdefault(key(finding.run.parameters), {})[finding.run.parameters["cores"]] = finding.found[what]
    return found


def _data_of(parameters: Values) -> _Data:
    return _Data(parameters["approach"], parameters["tuple_ms"], parameters["row_bytes"])


def _change_of(parameters: Values) -> _Change:
    return _Change(parameters["approach"], parameters["shuffles_per_minute"], parameters["state_bytes"])


def _figures_10_and_11(findings: Sequence[Finding], few_shards: Sequence[Finding]) -> Section:
    throughput, p99_s = _curves(findings, _data_of, "rows_per_s"), _curves(findings, _data_of, "p99_s")
    cores = sorted({count for curve in throughput.values() for count in curve})
    return Section(
        title="Figures 10 and 11: one executor, by the cost and the size of a tuple",
        text=_text_10(few_shards),
        tables=(
            PageTable(
                columns=("tuple", "approach", *map(_cores, cores)),
                rows=tuple(
                    (str(of), of.approach, *(_thousands(curve.get(count)) for count in cores))
                    for of, curve in throughput.items()
                ),
                caption="Throughput, thousand rows/s",
            ),
            PageTable(
                columns=("tuple", "approach", *map(_cores, cores)),
                rows=tuple(
                    (str(of), of.approach, *(_milliseconds(curve.get(count)) for count in cores)) for of, curve in p99_s.items()
                ),
                caption=f"p99 latency, ms, when the source makes {world.MOST_CORES:.0%} of what the cores could do",
            ),
        ),
        pictures=(
            Picture(
                name="single-executor-data",
                shows="Throughput and p99 latency of one executor by cores, for tuples of several costs and sizes",
                draw=lambda path: _draw_10(throughput, p99_s, path),
            ),
        ),
        claims=_claims_10(throughput, p99_s),
    )


def _text_10(few_shards: Sequence[Finding]) -> str:
    few = " ".join(
        f"With {f.run.parameters['shards']} of them, as one executor of 32 has, {f.run.parameters['cores']} cores do "
        f"{thousands(f.found['rows_per_s'])} thousand rows/s of 1 ms: there is about one shard for each core, and the hottest "
        "one holds all others back."
        for f in few_shards
    )
    return f"""
The calculator is one executor with all cores of a run: the first {paper.CORES_PER_NODE} on its own node, the others on
further nodes. Rows come in at its node, and those for other nodes leave by the same link, with
{paper.BANDWIDTH_BYTES_PER_S / 1e6:.0f} MB/s each way. Shards are balanced once a second (`elastic-executors` with one
executor, theta {single.THETA}); keys are not shuffled. The source makes {world.ALL_CORES - 1:.0%} more than all cores could
do, and is held back when a core has {world.QUEUE_S:g} s of work before it, or the link is full. For Figure 11 it makes
{world.MOST_CORES:.0%} of what they could do; up to {world.BUFFER_S:g} s of its rows wait for the executor, and this wait is
in the latency (p99 of each second, mean of the seconds, and the mean wait at the source).

The text is silent on the tuples between those it names (1 ms and 128 bytes by default; 0.1 and 0.01 ms, 2 and 8 KB), and on
the shards. Here the executor has all {SHARDS:,} that an operator has by default. {few} At {max(CORES)} cores the most
frequent key ({world.hottest_key_share():.2%} of all rows) fills its core at
{could_do_per_s(max(CORES), paper.SERVICE_TIME_S) / 1e3:.0f} thousand rows/s of 1 ms. What could be done is that, or what
the cores could do if it is less; an executor is called efficient from {EFFICIENT:.0%} of it on.

Not modelled: core time of the receiver, the emitter and the network's software; results that go back through the emitter
(the calculator is taken to be the last operator); the delay on the way from the entrance to a remote core; and queueing by
chance. Below saturation a row takes its service time, so latency is flat there by construction.

`tide` is a policy for operators and has no executors: rows go straight to the node of their shard, as Spark's tasks fetch
their own partitions. It runs with its defaults on the same nodes, all of which it has to keep, and begins with two replicas
for each core, as many as it wants.
"""


def _claims_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve]) -> tuple[Claim, ...]:
    elastic = {of: curve for of, curve in throughput.items() if of.approach == ELASTIC}
    default = elastic[_Data(ELASTIC, paper.SERVICE_TIME_S * 1e3, paper.ROW_BYTES)]
    cluster = max(default)
    used = efficiency(default, paper.SERVICE_TIME_S)[cluster]
    reach = {of: most_efficient_cores(curve, of.tuple_ms / 1e3) for of, curve in elastic.items()}
    extreme = {str(of): most for of, most in reach.items() if of.tuple_ms == 0.01 or of.row_bytes == 8192}
    growth = {of: p99_s[of][cluster] / p99_s[of][min(p99_s[of])] for of in elastic}
    calm = {str(of): times for of, times in growth.items() if not of.intensive}
    intensive = [times for of, times in growth.items() if of.intensive]
    at_last = {str(of): milliseconds(1e3 * p99_s[of][cluster]) for of in elastic if of.intensive}
    return (
        Claim(
            says="One executor scales out to the whole cluster with default tuples",
            paper="256 cores",
            here=f"{cluster} cores do {thousands(default[cluster])} thousand rows/s, {used:.0%} of what could be done",
            holds=used >= EFFICIENT,
            why="the busiest core holds all others back; see the table",
        ),
        Claim(
            says="It cannot use more than 16 cores efficiently with tuples of 8 KB, or of 0.01 ms",
            paper="16 cores",
            here="; ".join(f"{name}: {most} cores" for name, most in extreme.items()),
            holds=all(most <= 16 for most in extreme.values()),
            why="the link of the executor's node carries more than what these cores take",
        ),
        Claim(
            says="In most settings latency does not grow noticeably as it scales out",
            paper="no figures in the text",
            here=f"p99 with {cluster} cores over p99 with one: " + _told(calm, "{:.1f}"),
            holds=all(times < 2 for times in calm.values()),
            why="the busiest core is saturated at this load, and rows wait for it at the source",
        ),
        Claim(
            says="With tuples of 0.1 ms or less, or of 2 KB or more, latency grows greatly once the link is full",
            paper="no figures in the text",
            here=f"p99 with {cluster} cores, ms: "
            + _told(at_last, "{}")
            + f"; {min(intensive):,.0f} times that of one core, or more",
            holds=min(intensive) >= 10,
            why="with some of these tuples the link is not full at this load; see the table",
        ),
        _tide_claim_10(throughput, p99_s, cluster),
        _tide_with_fewer_cores([(throughput[of], throughput[tide]) for of, tide in _with_tide(throughput) if not of.intensive]),
    )


def _with_tide(throughput: Mapping[_Data, Curve]) -> list[tuple[_Data, _Data]]:
    return [(of, _Data(TIDE, of.tuple_ms, of.row_bytes)) for of in throughput if of.approach == ELASTIC]


def _tide_with_fewer_cores(curves: Sequence[tuple[Curve, Curve]]) -> Claim:
    """Of an executor's curves and tide's beside them, what is below the whole cluster."""
    cluster = max(cores for elastic, _ in curves for cores in elastic)
    gains = [rows / elastic[cores] for elastic, tide in curves for cores, rows in tide.items() if cores != cluster]
    return Claim(
        says="tide is as good as the executor with fewer cores too (to within 2 %), where no link is full",
        paper="-",
        here=f"{min(gains):.2f} to {max(gains):.2f} times its throughput",
        holds=min(gains) >= AS_GOOD,
        why="here whole nodes are the limit, not one key. Tide's two replicas for each core share a node's cores by what they "
        "wanted a step before, and a source that is held back lets rows in every other step: the two swing against each other, "
        "and cores are idle meanwhile. This comes largely of the simulator's steps, not of what tide decides",
        ours=True,
    )


def _tide_claim_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve], cluster: int) -> Claim:
    pairs = _with_tide(throughput)
    gains = {of: throughput[tide][cluster] / throughput[of][cluster] for of, tide in pairs}
    later = [str(of) for of, tide in pairs if p99_s[tide][cluster] > p99_s[of][cluster] / AS_GOOD]
    calm = [gain for of, gain in gains.items() if not of.intensive]
    full = [gain for of, gain in gains.items() if of.intensive]
    return Claim(
        says="On the whole cluster tide is as good as the executor (to within 2 %), better where a link is full; p99 no worse",
        paper="-",
        here=f"with {cluster} cores {min(calm):.2f} to {max(calm):.2f} times its throughput, and {min(full):.1f} to "
        f"{max(full):.1f} times where its link is full; p99 worse with {', '.join(later) or 'none'}",
        holds=min(calm) >= AS_GOOD and min(full) > 1 and not later,
        why="what counts where no link is full is how evenly shards are dealt; see the table",
        ours=True,
    )


def _figure_12(findings: Sequence[Finding]) -> Section:
    throughput, moved = _curves(findings, _change_of, "rows_per_s"), _curves(findings, _change_of, "shards_moved")
    cores = sorted({count for curve in throughput.values() for count in curve})
    return Section(
        title="Figure 12: one executor, by the size of state and by shuffles",
        text=_TEXT_12,
        tables=(
            PageTable(
                columns=("workload", "approach", *map(_cores, cores), "shards moved a minute"),
                rows=tuple(
                    (
                        str(of),
                        of.approach,
                        *(_thousands(curve.get(count)) for count in cores),
                        f"{moved[of][max(curve)]:,.0f}",
                    )
                    for of, curve in throughput.items()
                ),
                caption="Throughput, thousand rows/s; shards that went to another node, with the most cores",
            ),
        ),
        pictures=(
            Picture(
                name="single-executor-state",
                shows="Throughput of one executor by cores, for several sizes of state",
                draw=lambda path: _draw_12(throughput, path),
            ),
        ),
        claims=_claims_12(throughput),
    )


_TEXT_12 = f"""
The same executor with tuples of 1 ms and 128 bytes, and keys that are shuffled; measured over one minute. Of the sizes of
state the text names 32 MB only. A shard that moves to another node stands still until its state has come, a link carries
one state at a time, and once the queue before a core is full the whole executor waits. Transfers and rows do not slow each
other down. A pause shorter than half a step costs nothing, so the 2 ms of a synchronisation are not seen here (they are in
Figure 8). With {SHARDS:,} shards of 32 MB the executor has {SHARDS * 32 / 1024:.0f} GB of state, more than the memory of 8
nodes; the simulator counts memory but does not run out of it. What is said above of tide
with fewer cores than the whole cluster goes for this table too.
"""


def _claims_12(throughput: Mapping[_Change, Curve]) -> tuple[Claim, ...]:
    cluster = max(count for curve in throughput.values() for count in curve)
    used = {of: efficiency(curve, paper.SERVICE_TIME_S)[cluster] for of, curve in throughput.items()}
    large = {
        of.shuffles_per_minute: part
        for of, part in used.items()
        if of.approach == ELASTIC and of.state_bytes == single.LARGE_STATE_BYTES
    }
    few, many = min(large), max(large)
    return (
        *(_claim_by_size(used, shuffles, cluster) for shuffles in sorted(large)),
        Claim(
            says=f"With 32 MB of state it scales considerably less with {many} shuffles a minute than with {few}",
            paper="considerably",
            here=f"{large[many]:.0%} of what could be done, and {large[few]:.0%}",
            holds=large[many] < 0.8 * large[few],
            why="the executor waits for state most of the time already with fewer shuffles",
        ),
        _tide_claim_12(used),
    )


def _claim_by_size(used: Mapping[_Change, float], shuffles: float, cluster: int) -> Claim:
    by_size = {
        of.state_bytes: part for of, part in used.items() if of.approach == ELASTIC and of.shuffles_per_minute == shuffles
    }
    large = by_size[single.LARGE_STATE_BYTES]
    smaller = [part for size, part in by_size.items() if size != single.LARGE_STATE_BYTES]
    return Claim(
        says=f"With {shuffles:g} shuffles a minute an executor scales efficiently under all sizes of state but 32 MB",
        paper="all but 32 MB",
        here=f"of what {cluster} cores could do: " + _told({bytes_text(size): p for size, p in by_size.items()}, "{:.0%}"),
        holds=min(smaller) >= EFFICIENT > large,
        why=f"32 MB costs {1 - large / max(smaller):.0%} of the throughput: shares of shards are measured exactly, so one "
        "decision, a second after each shuffle, is enough, and its transfers are over well before the next shuffle, "
        f"{60 / shuffles:g} s later",
    )


def _tide_claim_12(used: Mapping[_Change, float]) -> Claim:
    pairs = [(of, _Change(TIDE, of.shuffles_per_minute, of.state_bytes)) for of in used if of.approach == ELASTIC]
    gains = {of: used[tide] / used[of] for of, tide in pairs}
    small = [gain for of, gain in gains.items() if of.state_bytes != single.LARGE_STATE_BYTES]
    large = [gain for of, gain in gains.items() if of.state_bytes == single.LARGE_STATE_BYTES]
    return Claim(
        says="On the whole cluster tide is as good as the executor with small state (to within 2 %), better with 32 MB",
        paper="-",
        here=f"{min(small):.2f} to {max(small):.2f} times its throughput, and "
        f"{min(large):.2f} to {max(large):.2f} times with 32 MB",
        holds=min(small) >= AS_GOOD and min(large) > 1,
        why="tide moves fewer shards, and leaves more uneven what the executor balances; see the table",
        ours=True,
    )


def _told(figures: Mapping[str, float] | Mapping[str, str], written: str) -> str:
    return "; ".join(f"{name}: {written.format(figure)}" for name, figure in figures.items())


def _cores(count: int) -> str:
    return f"{count} core" + "s" * (count > 1)


def _thousands(rows_per_s: float | None) -> str:
    return "" if rows_per_s is None else thousands(rows_per_s)


def _milliseconds(latency_s: float | None) -> str:
    return "" if latency_s is None else milliseconds(latency_s * 1e3)


def _draw_10(throughput: Mapping[_Data, Curve], p99_s: Mapping[_Data, Curve], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    def panel(title: str, y_label: str, curves: Mapping[_Data, Curve], factor: float) -> Lines:
        return Lines(
            title=title,
            x_label="cores",
            y_label=y_label,
            lines=[
                Line(name=str(of), x=list(curve), y=[factor * value for value in curve.values()])
                for of, curve in curves.items()
            ],
            log_x=True,
            log_y=True,
        )

    def chosen(curves: Mapping[_Data, Curve], by_cost: bool) -> dict[_Data, Curve]:
        return {
            of: curve
            for of, curve in curves.items()
            if of.approach == ELASTIC and (of.row_bytes == paper.ROW_BYTES if by_cost else of.tuple_ms == 1.0)
        }

    panels = [
        panel("Throughput, by tuple cost", "thousand rows/s", chosen(throughput, True), 1e-3),
        panel("Throughput, by tuple size", "thousand rows/s", chosen(throughput, False), 1e-3),
        panel("p99 latency, by tuple cost", "ms", chosen(p99_s, True), 1e3),
        panel("p99 latency, by tuple size", "ms", chosen(p99_s, False), 1e3),
    ]
    draw(panels, path)


def _draw_12(throughput: Mapping[_Change, Curve], path: Path) -> None:
    from springtide.experiments.drawing import Line, Lines, draw  # noqa: PLC0415 - matplotlib is slow

    panels = [
        Lines(
            title=f"Throughput, {shuffles} shuffles a minute",
            x_label="cores",
            y_label="thousand rows/s",
            lines=[
                Line(
                    name=f"{of.approach}, {bytes_text(of.state_bytes)}",
                    x=list(curve),
                    y=[rows_per_s / 1e3 for rows_per_s in curve.values()],
                )
                for of, curve in throughput.items()
                if of.shuffles_per_minute == shuffles
            ],
        )
        for shuffles in SHUFFLES_PER_MINUTE
    ]
    draw(panels, path)


EXPERIMENT = Experiment(name="single-executor", runs=runs, run=run, sections=sections)
