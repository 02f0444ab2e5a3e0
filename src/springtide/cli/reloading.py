"""A configuration file that is looked at in every interval: what changed in it takes effect without a restart."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from springtide.cli.configuration import Configuration, Settings, read_configuration, settled
from springtide.cli.telling import Teller
from springtide.errors import SpringtideError
from springtide.journal.steered import SteeredJournal
from springtide.loop import Charge
from springtide.model.application import SLO
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy

_Stamp = tuple[int, int, int] | None


class Reloading:
    """A recorder that comes after the journal among a loop's recorders, and says who is in charge from then on.

    A file that cannot be used is one warning, and what was in force stays. More hosts than the run was started with cannot be
    had: Spark was started for so many.
    """

    def __init__(self, path: Path, given: Configuration, own_slo: SLO, teller: Teller) -> None:
        """`given` is what the command line says, which goes before; `own_slo` the objective the application has by itself."""
        self._path, self._given, self._own_slo, self._teller = path, given, own_slo, teller
        self._stamp = _stamp(path)
        self.settings = settled(given, read_configuration(path))
        self._most_hosts = self.settings.max_hosts
        self._new_policy: AnyPolicy | None = None
        self._changed = False
        self.journal: SteeredJournal | None = None

    def observation(self, observation: Observation) -> None:
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            note = self._take(settled(self._given, read_configuration(self._path)))
        except SpringtideError as error:
            self._teller.warn(f"the configuration stays as it was: {error}")
            self._write(observation, str(error), refused=True)
        else:
            self._teller.say(f"{self._path}: {note}")
            self._write(observation, note, refused=False)

    def decision(self, *_: object) -> None: ...

    def outcome(self, *_: object) -> None: ...

    def recharged(self, charge: Charge) -> Charge:
        if not self._changed:
            return charge
        settings, policy = self.settings, self._new_policy
        self._changed, self._new_policy = False, None
        latency_s = self._own_slo.latency_s if settings.slo_s is None else settings.slo_s
        slo = dataclasses.replace(charge.application.slo, latency_s=latency_s)
        return dataclasses.replace(
            charge,
            application=dataclasses.replace(charge.application, slo=slo),
            pool=dataclasses.replace(charge.pool, min_hosts=settings.min_hosts, max_hosts=settings.max_hosts),
            policy=charge.policy if policy is None else policy,
        )

    def _take(self, settings: Settings) -> str:
        """Make the settings those in force, if all of them can be; what changed, in words."""
        if settings.max_hosts > self._most_hosts:
            raise SpringtideError(
                f"{self._path}: max_hosts cannot be {settings.max_hosts}: the run was started with at most {self._most_hosts}"
            )
        note = self.settings.differences(settings)
        if not note:
            return "nothing changed that the command line does not say"
        if not self.settings.same_policy(settings):
            self._new_policy = settings.make_policy()
        self.settings, self._changed = settings, True
        return note

    def _write(self, observation: Observation, note: str, *, refused: bool) -> None:
        if self.journal is not None:
            self.journal.reload(observation, note=note, refused=refused)


def _stamp(path: Path) -> _Stamp:
    """What tells that a file is another one: none for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
