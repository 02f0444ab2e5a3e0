"""What each operator has a reason to ask for: the Analyze phase of EDF's local policy.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops, section 3.1.

| symbol | here | unit |
|---|---|---|
| U_r | `HostObservation.utilisation` | share of the cores |
| U_max | `max_utilisation` | share of the cores |
| S_alpha | `OperatorObservation.replica_utilisation` | share of a core |
| S_s-out | `scale_out_above` | share of a core |
| c | `scale_in_share` | share of S_s-out |
| n | `OperatorAllocation.replicas` | |

Departure from the paper: an operator whose last change is still under way has no wish, because what was measured is not what
was requested.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.model.protocols import View
from springtide.plan.hierarchy.worth import Gain


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRules:
    """The local policy's thresholds; `who` is the policy's name, for what it refuses."""

    who: str
    max_utilisation: float
    scale_out_above: float
    scale_in_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Something an operator has a reason to ask for; whether it can be done is another question."""

    gain: Gain
    operator: str
    finding: str
    host: str = ""


def wishes(view: View, rules: LocalRules) -> list[Wish]:
    """Everything any operator has a reason to ask for, in the order of the application."""
    overloaded = {h.name: h.utilisation for h in view.observation.running_hosts if h.utilisation > rules.max_utilisation}
    found: list[Wish] = []
    for name, placed in view.requested.operators.items():
        seen = view.observation.operators.get(name)
        settled = seen is not None and len(seen.replica_utilisation) == placed.replicas
        if seen is None or not settled or view.observation.observed.operators.get(name) != placed:
            continue
        used = seen.replica_utilisation.tolist()
        n, most, together = len(used), max(used), sum(used)
        if most > rules.scale_out_above:  # S_alpha > S_s-out
            finding = f"its busiest replica at {most:.2f} > {rules.scale_out_above:.2f}"
            found.append(Wish(gain=Gain.SCALE_OUT, operator=name, finding=finding))
        crowded = [host for host in placed.replica_hosts if host in overloaded] if overloaded else []
        if crowded:  # U_r > U_max
            host = max(crowded, key=lambda h: overloaded[h])
            finding = f"{host} at {overloaded[host]:.2f} > {rules.max_utilisation:.2f}"
            found.append(Wish(gain=Gain.MIGRATION, operator=name, finding=finding, host=host))
        enough = rules.scale_in_share * rules.scale_out_above
        if n > 1 and together / (n - 1) < enough:  # sum S_alpha / (n - 1) < c S_s-out
            finding = f"{together:.2f} cores on one replica fewer are {together / (n - 1):.2f} each < {enough:.2f}"
            found.append(Wish(gain=Gain.SCALE_IN, operator=name, finding=finding))
    return found
