"""The paper's setting: a fixed cluster, the micro-benchmark of section 5.1, the exchange of section 5.4, and the policies.

What the paper does not say, and was chosen here:

* how often the scheduler runs: every second, as its transients last one to three;
* how much the generator makes: either as much as all cores could do if keys were spread evenly (then back-pressure decides
  what gets through: the throughput), or 60 % of that (then it shows who keeps up: the latency);
* what waits where: a tenth of a second of work in front of a replica, and what the generator makes in one second in front
  of them all;
* T_max: the time that a row's service takes, which nobody can reach: the cluster is fixed, so all cores are used;
* how long a repartitioning of the resource-centric approach stops upstream: 3 s. The introduction says "several seconds";
  a single shard takes two to three orders of magnitude longer than the 2 ms of an elastic executor (Figure 9(a));
* the exchange's key skew, service times and order flow: see `exchange_application`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from springtide.analyze.demand import gains
from springtide.backends.simulator.settings import Moves, SimulatorSettings
from springtide.backends.simulator.topology import KeySpace
from springtide.experiments.elasticutor import paper
from springtide.experiments.elasticutor.backpressure import Generator, Limits
from springtide.model.allocation import Allocation, HostType, OperatorAllocation, Pool, new_host_names, spread
from springtide.model.application import Application, Edge, KeyDistribution, Operator
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_guard, make_policy

STATIC, RESOURCE_CENTRIC, ELASTIC, NAIVE, TIDE = "static", "resource-centric", "elastic-executors", "naive-ec", "tide"
EXECUTOR_CENTRIC = (ELASTIC, NAIVE)

STEP_S, INTERVAL_S = 0.05, 1.0
WARM_UP_S = 10.0  # not counted: the first decisions, from a start that knows nothing of the keys
BUFFER_S, QUEUE_S = 1.0, 0.1
REPARTITION_S = 3.0
ALL_CORES, MOST_CORES = 1.05, 0.6  # what the generator makes, as a share of what all cores could do

_MOST_REPLICAS = 2048  # of an operator: more than any policy here asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The micro-benchmark's: omega, the size of a row, and executors times shards per executor."""

    shuffles_per_minute: float = paper.DEFAULT_SHUFFLES
    row_bytes: int = paper.ROW_BYTES
    executors: int = paper.EXECUTORS
    shards_per_executor: int = paper.SHARDS_PER_EXECUTOR


def micro_benchmark(workload: Workload) -> Application:
    """Figure 5: a generator and a calculator. The generator is the source: it takes no cores here."""
    calculator = Operator(
        name="calculator",
        service_time_s=paper.SERVICE_TIME_S,
        shards=workload.executors * workload.shards_per_executor,
        max_replicas=_MOST_REPLICAS,
        state_bytes_per_shard=paper.STATE_BYTES_PER_SHARD,
        row_bytes=workload.row_bytes,
        keys=KeyDistribution(keys=paper.KEYS, zipf=paper.ZIPF, shuffles_per_minute=workload.shuffles_per_minute),
    )
    return Application(name="micro-benchmark", operators=(calculator,))


EXCHANGE_STOCKS = 1_330
EXCHANGE_ZIPF = 0.8
EXCHANGE_SHUFFLES = (paper.DEFAULT_SHUFFLES, paper.FREQUENT_SHUFFLES)  # a minute: some, and many
EXCHANGE_SHARDS = 2_048
TRANSACTIONS_PER_ORDER = 0.32
_CORE_S_PER_ORDER = 256 / 300_000  # all cores of 32 nodes could do 300,000 orders a second


def exchange_application(shuffles_per_minute: float) -> Application:
    """Figure 14: a transactor, whose transactions go to six operators for statistics and five for events.

    The paper's orders are not public. Stocks are as unequal as the securities of two days in Frankfurt (about 1,330 of them,
    rank-size slopes of 0.69 and 0.84); an order leads to 0.32 transactions, as of Kweichow Moutai on 7 February 2023 in
    Shanghai (58,430 orders, 18,685 trades). Popularity changes at once, and for all stocks. Service times are
    such that every operator has about as much to do as the others (the first of the analytics 5 % more than the mean, the last
    5 % less: among equals, rounding would decide who gets a core that is left over), and all cores could do 300,000 orders a
    second.
    """
    keys = KeyDistribution(keys=EXCHANGE_STOCKS, zipf=EXCHANGE_ZIPF, shuffles_per_minute=shuffles_per_minute)
    operators = 1 + paper.ANALYTICS
    names = [*(f"statistics-{n}" for n in range(1, 7)), *(f"event-{n}" for n in range(1, 6))]

    def operator(name: str, service_time_s: float, row_bytes: int) -> Operator:
        return Operator(
            name=name,
            service_time_s=service_time_s,
            shards=EXCHANGE_SHARDS,
            max_replicas=_MOST_REPLICAS,
            state_bytes_per_shard=paper.STATE_BYTES_PER_SHARD,
            row_bytes=row_bytes,
            keys=keys,
        )

    transactor_s = _CORE_S_PER_ORDER / operators
    mean_s = transactor_s / TRANSACTIONS_PER_ORDER
    analytics_s = [mean_s * (1.05 - 0.1 * n / (paper.ANALYTICS - 1)) for n in range(paper.ANALYTICS)]
    return Application(
        name="exchange",
        operators=(
            operator("transactor", transactor_s, paper.ORDER_BYTES),
            *(operator(name, time_s, paper.TRANSACTION_BYTES) for name, time_s in zip(names, analytics_s, strict=True)),
        ),
        edges=tuple(Edge(upstream="transactor", downstream=name, selectivity=TRANSACTIONS_PER_ORDER) for name in names),
    )


def cluster(nodes: int = paper.NODES) -> Pool:
    """All nodes, from the start to the end."""
    host = HostType(
        cores=paper.CORES_PER_NODE,
        memory_bytes=paper.MEMORY_BYTES,
        bandwidth_bytes_per_s=paper.BANDWIDTH_BYTES_PER_S,
    )
    return Pool(host=host, min_hosts=nodes, max_hosts=nodes)


def core_s_per_row(application: Application) -> float:
    """The core time that one row of the source takes, on its way through all operators."""
    of = gains(application)[application.sources[0].name]
    return sum(of[operator.name] * operator.service_time_s for operator in application.operators)


def most_rows_per_s(application: Application, pool: Pool) -> float:
    """What all cores could do if keys were spread evenly over them."""
    return pool.max_hosts * pool.host.cores / core_s_per_row(application)


def generator(application: Application, pool: Pool, share: float, duration_s: float) -> Generator:
    rows_per_s = share * most_rows_per_s(application, pool)
    return Generator(rows_per_s=rows_per_s, duration_s=duration_s, buffer_rows=BUFFER_S * rows_per_s)


def settings(policy: str) -> SimulatorSettings:
    sync_s = REPARTITION_S if policy == RESOURCE_CENTRIC else paper.SYNCHRONISATION_S
    return SimulatorSettings(step_s=STEP_S, interval_s=INTERVAL_S, moves=Moves(synchronisation_s=sync_s))


def limits(policy: str, executors: int) -> Limits:
    return Limits(
        queue_s=QUEUE_S,
        executors=executors if policy in EXECUTOR_CENTRIC else 0,
        repartition_s=REPARTITION_S if policy == RESOURCE_CENTRIC else 0.0,
    )


def made_policy(name: str, application: Application, executors: int) -> AnyPolicy:
    """Static keeps the start; tide has its defaults."""
    if name in (STATIC, TIDE):
        return make_policy(name, {})
    t_max_s = core_s_per_row(application)
    if name in EXECUTOR_CENTRIC:
        return make_policy(name, {"t_max_s": t_max_s, "executors": executors})
    # Nothing is seen of the keys while upstream stands still: the next decision is due an interval after that.
    after = {"grace_s": REPARTITION_S + INTERVAL_S, "scope": "application"}
    return make_guard("cooldown", after, make_policy(name, {"t_max_s": t_max_s}))


def start(policy: str, application: Application, pool: Pool, executors: int) -> Allocation:
    """A replica for every core, dealt over the nodes in turn; executors have shards of their own, and cores side by side."""
    hosts = new_host_names(frozenset(), pool.max_hosts)
    cores = pool.max_hosts * pool.host.cores
    names = [operator.name for operator in application.operators]
    each = {name: cores // len(names) + (i < cores % len(names)) for i, name in enumerate(names)}
    if policy not in EXECUTOR_CENTRIC:
        return spread(application, hosts, each)
    placed: dict[str, OperatorAllocation] = {}
    first = 0
    for operator in application.operators:
        count = min(max(1, each[operator.name] // executors), operator.shards // executors)
        numbers = range(first, first + executors * count)
        homes = [hosts[number % cores // pool.host.cores] for number in numbers]
        placed[operator.name] = _as_executors(operator, executors, count, homes)
        first += executors * count
    return Allocation(hosts, placed)


def _as_executors(operator: Operator, executors: int, cores: int, hosts: list[str]) -> OperatorAllocation:
    """Executors with so many cores each: shards in blocks to executors, and in turn to an executor's replicas."""
    shards = operator.shards // executors
    routes = tuple(shard // shards * cores + shard % shards % cores for shard in range(operator.shards))
    return OperatorAllocation(tuple(hosts), routes)


def hottest_key_share() -> float:
    """The part of the micro-benchmark's rows that has the most frequent key."""
    return _highest_share(paper.KEYS, paper.ZIPF)


def hottest_key_limit_per_s() -> float:
    """The most rows per second that can come through if the most frequent key stays on one core."""
    return 1.0 / (hottest_key_share() * paper.SERVICE_TIME_S)


def hottest_shard_limit_per_s(shuffles: int = 100) -> float:
    """The same if a shard stays on one core: the mean over shuffles, as chance gives the key others to share its shard with."""
    operator = micro_benchmark(Workload()).operators[0]
    keys = KeySpace(operator.keys, operator.shards, np.random.default_rng(0))
    limits_per_s = []
    for _ in range(shuffles):
        limits_per_s.append(1.0 / (float(keys.shares().max()) * paper.SERVICE_TIME_S))
        keys.shuffle()
    return math.fsum(limits_per_s) / shuffles


def exchange_executors(nodes: int) -> int:
    """Per operator: one for every two nodes, so that the executors of twelve operators find a core each."""
    return nodes // 2


def hottest_stock_limit_per_s() -> float:
    """The most orders per second that can come through if the most popular stock stays on one core in every operator."""
    application = exchange_application(0)
    rows = gains(application)[application.sources[0].name]
    slowest_s = max(rows[operator.name] * operator.service_time_s for operator in application.operators)
    return 1.0 / (_highest_share(EXCHANGE_STOCKS, EXCHANGE_ZIPF) * slowest_s)


def _highest_share(keys: int, zipf: float) -> float:
    """How often the most frequent key occurs."""
    return 1.0 / math.fsum(math.pow(rank, -zipf) for rank in range(1, keys + 1))
