"""What was said by hand and still holds: paused, pinned, draining."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from springtide.dashboard.parts import ControlPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    paused: bool = False
    pins: Mapping[str, int] = field(default_factory=dict)
    draining: frozenset[str] = frozenset()

    def then(self, control: ControlPart) -> Steering:
        """With one more control; one that was refused, or that steers nothing, changes nothing.

        >>> Steering().then(ControlPart(time_s=5.0, interval=1, do="pin", operator="count", replicas=4)).pins
        {'count': 4}
        """
        pins, draining = dict(self.pins), set(self.draining)
        match control.do:
            case "pin" if control.operator is not None and control.replicas is not None:
                pins[control.operator] = control.replicas
            case "unpin":
                pins.pop(control.operator or "", None)
            case "drain" if control.host is not None:
                draining.add(control.host)
            case "undrain":
                draining.discard(control.host or "")
        paused = {"pause": True, "resume": False}.get(control.do, self.paused)
        return Steering(paused=paused, pins=pins, draining=frozenset(draining))
