"""Nothing is carried out: the policy decides on a live application, and the journal keeps what it would have done.

What has been requested stays as it is, so the policy is asked the same question again until the load answers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from springtide.model.change import change
from springtide.model.decision import Decision, WhyNot
from springtide.model.protocols import AnyPolicy, View


@dataclass(frozen=True, slots=True)
class DryRun:
    """Plans what has been requested already, and says what would have been. It needs no memory of its own."""

    name: ClassVar[str] = "dry-run"
    summary: ClassVar[str] = "nothing is carried out; says what would have been"

    policy: AnyPolicy

    def start(self) -> Any:
        return self.policy.start()

    def decide(self, view: View, memory: Any) -> tuple[Decision, Any]:
        decision, memory = self.policy.decide(view, memory)
        wanted = change(view.requested, decision.planned)
        decision = replace(decision, trigger_s=view.observation.trigger_s)
        if not wanted:
            return decision, memory
        veto = WhyNot(self.name, str(wanted), "nothing is carried out in a dry run")
        return decision.refused(view.requested, veto), memory
