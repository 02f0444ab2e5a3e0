"""Recorders: what a run is written down by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.model.action import Action
from springtide.model.decision import Decision, Outcome
from springtide.model.observation import Observation
from springtide.model.protocols import Recorder


@dataclass(frozen=True)
class Everyone:
    """Several recorders as one."""

    recorders: tuple[Recorder, ...]

    def observation(self, observation: Observation) -> None:
        for recorder in self.recorders:
            recorder.observation(observation)

    def decision(self, observation: Observation, decision: Decision, actions: Sequence[Action]) -> None:
        for recorder in self.recorders:
            recorder.decision(observation, decision, actions)

    def outcome(self, outcome: Outcome, time_s: float) -> None:
        for recorder in self.recorders:
            recorder.outcome(outcome, time_s)
