"""Who is in charge: the paper's local policy with everything accepted or under its token bucket, `tide`, and nobody."""

from __future__ import annotations

from springtide.experiments.edf import paper
from springtide.model.protocols import AnyPolicy
from springtide.plan.registry import make_guard, make_policy

ACCEPT_ALL = "accept all"
TIDE = "tide"
STATIC_FEW = "static, 8 replicas"
STATIC_MANY = "static, 13 replicas"

_PLENTY = 1000  # tokens, more than can ever be asked for


def under_tokens(beta: float) -> str:
    """The name of the paper's policy with a token bucket.

    >>> under_tokens(0.75)
    'beta 0.75'
    """
    return f"beta {beta:g}"


def policy_of(name: str, *, seed: int, stop_s: float) -> AnyPolicy:
    """The policy by the name that tables have for it."""
    if name == TIDE:
        return make_policy("tide", {})
    if name in (STATIC_FEW, STATIC_MANY):
        return make_policy("static", {})
    proposing = _accepting_all(seed)
    if name == ACCEPT_ALL:
        return proposing
    beta = float(name.removeprefix("beta "))
    guard = {
        "capacity": paper.BUCKET_TOKENS,
        "tokens_per_minute": paper.TOKENS_PER_MINUTE,
        "calm_tokens_per_minute": 0.0,
        "beta": beta,
        "pause_s": stop_s,
    }
    return make_guard("gain-cost", guard, proposing)


def _accepting_all(seed: int) -> AnyPolicy:
    tokens = {"capacity": _PLENTY, "tokens_per_minute": _PLENTY, "calm_tokens_per_minute": _PLENTY, "beta": 0.0}
    rules = {
        "max_utilisation": paper.MAX_UTILISATION,
        "scale_out_above": paper.SCALE_OUT_ABOVE,
        "scale_in_share": paper.SCALE_IN_SHARE,
        "discounts_stops": 0,
    }
    return make_policy("hierarchical", {**tokens, **rules, "seed": seed})
