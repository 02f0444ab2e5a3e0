"""How people steer a run that a policy is in charge of: what they hold still, and what they want empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from springtide.errors import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """What stays as it is, whatever the policy says, until somebody takes it back.

    `paused`: the policy changes nothing. `pins`: how many replicas an operator has. `draining`: hosts that are to be emptied
    and released. Pins and draining hosts are wishes of their own, and are carried out while the policy is paused, too.
    """

    paused: bool = False
    pins: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    draining: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for operator, replicas in self.pins.items():
            require(replicas >= 1, f"operator {operator!r} cannot be pinned to {replicas} replicas: 1 is the fewest")

    def __bool__(self) -> bool:
        """Whether anything is steered at all."""
        return self.paused or bool(self.pins) or bool(self.draining)


UNSTEERED = Steering()
