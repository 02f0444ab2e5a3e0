"""The journal of a live run, which can be steered by hand: what is asked for is done, or refused, and written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from springtide.journal.controls import ControlRequest, ControlsReader, followed, now_text, refusal
from springtide.journal.records import ControlRecord, RunRecord
from springtide.journal.writing import JournalWriter
from springtide.model.observation import Observation
from springtide.model.steering import UNSTEERED, Steering


class SteeredJournal(JournalWriter):
    """Every observation, with every shard's load; and behind each, what was asked for by hand in that interval.

    `steering` says how the run is steered since. `say`, if anybody sets it, is told in one line of everything asked for.
    """

    def __init__(self, path: str | Path, run: RunRecord) -> None:
        super().__init__(path, run, detail="shards")
        self._controls = ControlsReader(path)
        self._application = run.application
        self._steering = UNSTEERED
        self.say: Callable[[str], None] = lambda _: None

    def steering(self) -> Steering:
        return self._steering

    def observation(self, observation: Observation) -> None:
        super().observation(observation)
        for request in self._controls.new():
            self._do(request, observation)

    def reload(self, observation: Observation, *, note: str, refused: bool) -> None:
        """The configuration was read anew: `note` says what changed, or why it stays as it was."""
        self.control(
            ControlRecord(
                time_s=float(observation.end_s),
                interval=int(observation.index),
                do="refused" if refused else "reload",
                who="configuration",
                said_at=now_text(),
                note=note,
            )
        )

    def _do(self, request: ControlRequest, observation: Observation) -> None:
        hosts = {*observation.hosts, *observation.requested.hosts}
        why = refusal(request, self._application, hosts, self._steering)
        if not why:
            self._steering = followed(self._steering, request)
        elif not request.note:
            why = f"{request}: {why}"
        self.control(
            ControlRecord(
                time_s=float(observation.end_s),
                interval=int(observation.index),
                do="refused" if why else request.do,
                operator=request.operator,
                host=request.host,
                replicas=request.replicas,
                who=request.who,
                said_at=request.said_at,
                note=why,
            )
        )
        self.say(f"by hand ({request.who}): {f'refused: {why}' if why else request}")
