"""How a live run tells of itself on standard error: in words for people, or as one JSON object per line for a log.

A log line has `timestamp` (UTC), `level` and `kind`: an `observation`, a `decision`, an `event` of the backend, or a `message`.
Measures that are not finite are null, as in the journal, and the fields are called as there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
import typer

from springtide.errors import SpringtideError, nearest
from springtide.model.action import Action
from springtide.model.change import change, describe_change
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation

FORMATS = ("text", "json")


class Teller(Protocol):
    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...


class InWords:
    """Lines for people."""

    def say(self, text: str) -> None:
        typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        typer.echo(f"springtide: {text}", err=True)


def _now() -> datetime:
    return datetime.now(UTC)


def _on_standard_error(line: bytes) -> None:
    sys.stderr.write(line.decode() + "\n")  # one write for the whole line: others may write, too
    sys.stderr.flush()


class StructuredLog:
    """A recorder that logs every interval, decision and event; and what else is to be said."""

    def __init__(self, write: Callable[[bytes], None] = _on_standard_error, now: Callable[[], datetime] = _now) -> None:
        self._write, self._now = write, now

    def say(self, text: str) -> None:
        self._log("message", message=text)

    def warn(self, text: str) -> None:
        self._log("message", "warning", message=text)

    def observation(self, observation: Observation) -> None:
        self._log(
            "observation",
            interval=observation.index,
            time_s=observation.end_s,
            offered_per_s=observation.offered_rows / observation.interval_s,
            backlog_rows=observation.backlog_rows,
            latency_p50_s=observation.latency.p50_s,
            latency_p99_s=observation.latency.p99_s,
            latency_slo_s=observation.latency.slo_s,
            late_share=observation.latency.violation_share,
            hosts=len(observation.running_hosts),
            replicas={name: placed.replicas for name, placed in observation.observed.operators.items()},
        )
        for event in observation.events:
            self._log("event", interval=observation.index, time_s=observation.end_s, message=event)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        changed = change(observation.requested, decision.planned)
        self._log(
            "decision",
            interval=observation.index,
            time_s=observation.end_s,
            reason=decision.reason,
            change=describe_change(changed, actions),
            why_not=[str(veto) for veto in decision.why_not],
            actions=[str(action) for action in actions],
        )

    def outcome(self, outcome: Outcome, time_s: float) -> None: ...

    def _log(self, kind: str, level: str = "info", **fields: Any) -> None:
        timestamp = self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # numpy's numbers are none of JSON's: float() makes them so.
        self._write(msgspec.json.encode({"timestamp": timestamp, "level": level, "kind": kind, **fields}, enc_hook=float))


def teller(log_format: str) -> Teller:
    if log_format not in FORMATS:
        raise SpringtideError(f"--log-format cannot be {log_format!r}; {nearest(log_format, FORMATS)}")
    return StructuredLog() if log_format == "json" else InWords()
