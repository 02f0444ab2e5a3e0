"""The paper's setting: three applications, a cluster of 56 cores, and who decides on it.

What the text gives: seven hosts of 8 cores; four operators of the first application and of the DNS one; r_over = 32, 40 and 12
replicas, which are 8, 5 and 3 of each operator, so the complex application has eight operators. What it does not give are rates
and execution times. They are taken from its tables:

* r = 1 processes 33.2 % of the rows and PSPS has 3.5 replicas of an operator on average (Table VIII): both fit operators that
  all take the same time, and a mean rate of 0.38 of the peak.
* With a queue of 100 and of 1000 rows the latency is 30 ms and 312 ms (Table VI): a queue empties at about 3,300 rows/s. So the
  peak is taken to be 4,000 rows/s, and an operator to take 2 ms.
* PSPS has 10.2 replicas of the eight operators of the complex application (Table XI): all but one do with a single replica.
* PSPS has 4.7 replicas of the four operators of the DNS application (Table XII): one of each does, but for bursts.

The operators are named as in the applications that Springtide ships; all are stateless here, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from springtide.analyze.demand import gains
from springtide.backends.simulator.settings import Activation, Arrivals, BalancedBy, SimulatorSettings
from springtide.errors import InvalidValue, nearest
from springtide.model.allocation import Allocation, HostType, Pool, new_host_names, spread
from springtide.model.application import SLO, Application, Edge, Grouping, Operator
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_policy

PSPS, DABS, STORM, TIDE = "predictive", "dabs", "static", "tide"

CLUSTER_CORES = 56
RESTART_S = 10.0  # of a Storm topology: the paper does not say how long one takes
TIDE_HOST_CORES = 2  # a quarter of one of the paper's hosts: what tide takes and gives back at once
OBJECTIVE_S = 10.0  # what tide is asked to keep for nine rows in ten: less than PSPS needs for them here, by its p90
STEP_S = 0.05

_REPLICAS_PER_CORE = 2  # that tide has: see plan.placement.sharing
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An application: what a row takes in each operator, where rows go, and the over-provisioned replicas of all operators."""

    service_time_s: Mapping[str, float]
    edges: Mapping[tuple[str, str], float]
    over_provisioned: int
    stream: str


def _in_a_row(*names: str) -> dict[tuple[str, str], float]:
    return dict.fromkeys(pairwise(names), 1.0)


PLANS: Mapping[str, Plan] = {
    "tweets": Plan(
        service_time_s=dict.fromkeys(("parse", "content", "author", "minutes"), 0.002),
        edges=_in_a_row("parse", "content", "author", "minutes"),
        over_provisioned=32,
        stream="tweets",
    ),
    "complex": Plan(
        service_time_s={
            "parse": 0.0002,
            "content": 0.00125,
            "author": 0.0002,
            "news": 0.0002,
            "opinions": 0.0002,
            "pulse": 0.0002,
            "minutes": 0.0002,
            "store": 0.0002,
        },
        edges={
            **_in_a_row("parse", "content", "author"),
            ("author", "news"): 0.4,
            ("author", "opinions"): 0.6,
            ("news", "pulse"): 1.0,
            **_in_a_row("opinions", "pulse", "minutes", "store"),
        },
        over_provisioned=40,
        stream="tweets",
    ),
    "dns": Plan(
        service_time_s=dict.fromkeys(("parse", "features", "windows", "verdicts"), 0.001),
        edges=_in_a_row("parse", "features", "windows", "verdicts"),
        over_provisioned=12,
        stream="dns",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One configuration of the paper: what is run, on which stretch of which stream, by whom, and with which parameters.

    `replicas` is Storm's fixed number of each operator. `balanced_by` is what load-balancing grouping takes for the load of a
    replica. `raw` is the stream of tweets as it was recorded, not smoothed.
    """

    application: str
    policy: str
    stretch: int = 0
    replicas: int = 0
    interval_s: float = 30.0
    timeout_s: float = 30.0
    queue_rows: float = 100_000.0
    grouping: str = Grouping.LOAD_BALANCED.value
    balanced_by: str = BalancedBy.PENDING.value
    raw: bool = False
    restart_s: float = RESTART_S

    @property
    def plan(self) -> Plan:
        if self.application not in PLANS:
            raise InvalidValue(f"there is no application {self.application!r}; {nearest(self.application, PLANS)}")
        return PLANS[self.application]

    @property
    def stream(self) -> str:
        return f"raw-{self.plan.stream}" if self.raw else self.plan.stream


def tide_instead(setting: Setting) -> Setting:
    """The same configuration with tide in charge, and Storm's own grouping: load balancing is a part of PSPS."""
    return replace(setting, policy=TIDE, grouping=Grouping.SHUFFLE.value)


def application(setting: Setting) -> Application:
    """The application as this configuration runs it."""
    plan = setting.plan
    each = CLUSTER_CORES // len(plan.service_time_s)
    most = each * _REPLICAS_PER_CORE if setting.policy == TIDE else each
    operators = tuple(
        Operator(
            name=name,
            service_time_s=service_time_s,
            grouping=Grouping(setting.grouping),
            max_replicas=most,
            queue_rows=setting.queue_rows,
        )
        for name, service_time_s in plan.service_time_s.items()
    )
    return Application(
        name=setting.application,
        operators=operators,
        edges=tuple(Edge(upstream=a, downstream=b, selectivity=share) for (a, b), share in plan.edges.items()),
        slo=SLO(latency_s=min(OBJECTIVE_S, setting.timeout_s / 2), percentile=0.9),
        timeout_s=_timeout_s(setting),
    )


def _timeout_s(setting: Setting) -> float:
    """Storm's rows in the tables have latencies far above t_out, so nothing was dropped there for being old."""
    return math.inf if setting.policy == STORM else setting.timeout_s


def pool(setting: Setting) -> Pool:
    """The paper's seven hosts; for tide the over-provisioned cores in small pieces: those that it holds are what it uses."""
    if setting.policy == TIDE:
        piece = HostType(cores=TIDE_HOST_CORES, start_s=0.0, release_s=0.0)
        return Pool(host=piece, min_hosts=1, max_hosts=setting.plan.over_provisioned // TIDE_HOST_CORES)
    return Pool(host=HostType(cores=8, memory_bytes=7_200_000_000, start_s=0.0, release_s=0.0), min_hosts=7, max_hosts=7)


def settings(setting: Setting) -> SimulatorSettings:
    """Replicas are switched on and off at once, but for DABS, which restarts Storm and loses what waits (section V-F)."""
    restarts = setting.policy == DABS
    return SimulatorSettings(
        step_s=STEP_S,
        interval_s=setting.interval_s,
        arrivals=Arrivals.POISSON,
        balanced_by=BalancedBy(setting.balanced_by),
        activation=Activation.RESTART if restarts else Activation.POOL,
        restart_s=setting.restart_s,
        restart_drops_queue=restarts,
    )


def policy(setting: Setting) -> AnyPolicy:
    """tide is told that changes cost nothing, and plans no further than its decisions last: cores come at once.

    All rows that its objective allows to be late may be, as PSPS keeps no reserve either.
    """
    free = {"change_s": 0.0, "changes_per_hour": 240.0, "horizon_s": setting.interval_s, "spend": 1.0}
    return make_policy(setting.policy, free if setting.policy == TIDE else {})


def start(setting: Setting, described: Application, first_rows_per_s: float) -> Allocation:
    """Storm's fixed replicas; for the others, the replicas that equation 1 gives the rate of the first time interval."""
    rows = gains(described)["source"]
    needed = {
        o.name: max(1, math.ceil(first_rows_per_s * rows[o.name] * o.service_time_s - _ROUNDING)) for o in described.operators
    }
    if setting.policy == TIDE:
        hosts = new_host_names(frozenset(), math.ceil(sum(needed.values()) / TIDE_HOST_CORES))
        return spread(described, hosts, {name: _REPLICAS_PER_CORE * count for name, count in needed.items()})
    hosts = new_host_names(frozenset(), pool(setting).max_hosts)
    return spread(described, hosts, dict.fromkeys(needed, setting.replicas) if setting.policy == STORM else needed)
