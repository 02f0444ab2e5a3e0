"""Every policy and every guard by its name.

To add one: write its class, with `name`, `summary` and (a policy) `reference`, and put it into the tuple here. Its parameters
are its dataclass fields, and their defaults live there and nowhere else. Every mistake in asking for one is a
`SpringtideError` of one line that says what would be right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from springtide.errors import SpringtideError, nearest
from springtide.model.protocols import AnyPolicy, Policy
from springtide.plan.guards.balance import Balanced
from springtide.plan.guards.bounds import Bounded
from springtide.plan.guards.confirmation import Confirmed
from springtide.plan.guards.cooldown import Cooldown
from springtide.plan.guards.dry_run import DryRun
from springtide.plan.guards.gain_cost import GainCost
from springtide.plan.guards.scale_down_window import ScaleDownWindow
from springtide.plan.guards.token_bucket import TokenBucket
from springtide.plan.parameters import with_parameters
from springtide.plan.policies.cost_balance import CostBalance
from springtide.plan.policies.dabs import Dabs
from springtide.plan.policies.ds2 import Ds2
from springtide.plan.policies.elastic_executors import ElasticExecutors
from springtide.plan.policies.global_thresholds import GlobalThresholds
from springtide.plan.policies.hierarchical import Hierarchical
from springtide.plan.policies.hpa import HorizontalPodAutoscaler
from springtide.plan.policies.local_thresholds import LocalThresholds
from springtide.plan.policies.naive_ec import NaiveEC
from springtide.plan.policies.oracle import Oracle
from springtide.plan.policies.predictive import Predictive
from springtide.plan.policies.proactive import Proactive
from springtide.plan.policies.reactive import Reactive
from springtide.plan.policies.resource_centric import ResourceCentric
from springtide.plan.policies.sarsa import Sarsa
from springtide.plan.policies.spark_dynamic_allocation import SparkDynamicAllocation
from springtide.plan.policies.static import Static
from springtide.plan.policies.tide import Tide


class RegisteredPolicy(Policy[Any], Protocol):
    """A policy that can be asked for by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]


class RegisteredGuard(Policy[Any], Protocol):
    """A policy around a policy, its first field, that can be asked for by name."""

    name: ClassVar[str]
    summary: ClassVar[str]


_POLICIES: tuple[type[RegisteredPolicy], ...] = (
    Static,
    LocalThresholds,
    GlobalThresholds,
    Sarsa,
    Hierarchical,
    Predictive,
    Dabs,
    Reactive,
    Proactive,
    CostBalance,
    ElasticExecutors,
    NaiveEC,
    ResourceCentric,
    Ds2,
    SparkDynamicAllocation,
    HorizontalPodAutoscaler,
    Oracle,
    Tide,
)
_GUARDS: tuple[type[RegisteredGuard], ...] = (
    Bounded,
    Cooldown,
    Confirmed,
    ScaleDownWindow,
    TokenBucket,
    GainCost,
    Balanced,
    DryRun,
)

Registered = TypeVar("Registered")


def policies() -> dict[str, type[RegisteredPolicy]]:
    """Every policy, by name."""
    return {policy.name: policy for policy in _POLICIES}


def guards() -> dict[str, type[RegisteredGuard]]:
    """Every guard, by name."""
    return {guard.name: guard for guard in _GUARDS}


def make_policy(name: str, parameters: Mapping[str, object]) -> AnyPolicy:
    """The policy of that name with these parameters.

    >>> make_policy("static", {"hosts": "3"})
    Static(replicas=0, hosts=3)
    """
    found: type[Any] = _found(name, policies(), "policy")
    policy: AnyPolicy = found(**with_parameters(found, f"policy {name!r}", parameters))
    return policy


def make_guard(name: str, parameters: Mapping[str, object], policy: AnyPolicy) -> AnyPolicy:
    """The guard of that name with these parameters, around a policy."""
    found: type[Any] = _found(name, guards(), "guard")
    guard: AnyPolicy = found(policy, **with_parameters(found, f"guard {name!r}", parameters))
    return guard


def cite(name: str) -> str:
    """The paper or system that a policy is taken from."""
    return _found(name, policies(), "policy").reference


def _found(name: str, known: Mapping[str, Registered], what: str) -> Registered:
    if name not in known:
        raise SpringtideError(f"there is no {what} {name!r}; {nearest(name, known)}")
    return known[name]
