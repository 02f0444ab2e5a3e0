"""A journal file, followed as it grows.

Only whole lines are taken in: what follows the last newline is read again when there is more of it. A journal is append-only:
a file that shrinks, is replaced or is gone is not the run any more. The journal has failed then, what was read of it stays, and
what to do is said.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from springtide.dashboard.index import DamagedJournal, Index
from springtide.journal.records import AllocationRecord, DecisionRecord, ObservationRecord, OutcomeRecord

BLOCK_BYTES = 4 * 2**20
_AGAIN = "start the dashboard again"

_observations: msgspec.json.Decoder[ObservationRecord] = msgspec.json.Decoder(ObservationRecord)
_decisions: msgspec.json.Decoder[DecisionRecord] = msgspec.json.Decoder(DecisionRecord)
_outcomes: msgspec.json.Decoder[OutcomeRecord] = msgspec.json.Decoder(OutcomeRecord)


class FollowedJournal:
    """The index of a file, and the file itself, from which single records are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = Index()
        self.failure: str | None = None
        self.grew_at_s = 0.0  # when the file was last written to, as the file says
        self._file: BinaryIO | None = None
        self._seen = (0, 0)  # size, and time of the last change in ns, up to which everything was looked at

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read_all(self) -> None:
        """Everything that is there."""
        while self.read_more():
            pass

    def read_more(self) -> bool:
        """Read a block of what is new. Whether there may be more at once."""
        if self.failure is not None:
            return False
        try:
            return self._read_more()
        except DamagedJournal as damage:
            self._fail(f"{damage}; mend or replace the file, and {_AGAIN}")
        except OSError as error:
            self._fail(f"it cannot be read ({error.strerror}); see to that, and {_AGAIN}")
        return False

    def _read_more(self) -> bool:
        status = self._status()
        if status is None or (status.st_size, status.st_mtime_ns) == self._seen:
            return False
        size_bytes, whole_bytes = status.st_size, self.index.whole_bytes
        if size_bytes < whole_bytes:
            self._fail(f"it has become shorter than it was, and a journal only grows; {_AGAIN} to read it as it is now")
            return False
        assert self._file is not None
        block = self._block(whole_bytes, BLOCK_BYTES)
        while b"\n" not in block and whole_bytes + len(block) < size_bytes:
            block += self._block(whole_bytes + len(block), BLOCK_BYTES)
        self.index.feed(block)
        self._seen = (whole_bytes + len(block), status.st_mtime_ns)
        return self._seen[0] < size_bytes

    def _status(self) -> os.stat_result | None:
        """Of the file as it is now; nothing as long as it does not exist."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            if self._file is not None:
                self._fail(f"the file is gone; bring it back, or {_AGAIN} with another")
            return None
        if self._file is None:
            self._file = self.path.open("rb")
        opened = os.fstat(self._file.fileno())
        if (opened.st_dev, opened.st_ino) != (status.st_dev, status.st_ino):
            self._fail(f"another file has taken its place; {_AGAIN} to read that one")
            return None
        self.grew_at_s = status.st_mtime
        return status

    def _fail(self, why: str) -> None:
        self.failure = f"{self.path.name}: {why}."

    def _block(self, offset: int, length: int) -> bytes:
        assert self._file is not None
        return os.pread(self._file.fileno(), length, offset)

    def observation(self, row: int) -> ObservationRecord:
        """The record of a row, with its allocations filled in."""
        places = self.index.places
        seen = self._observation_alone(row)
        observed_at, requested_at = int(places["observed_at"][row]), int(places["requested_at"][row])
        observed = seen.observed or self._observation_alone(observed_at).observed
        requested = seen.requested or self._observation_alone(requested_at).requested
        return msgspec.structs.replace(seen, observed=observed, requested=requested)

    def observed(self, row: int) -> AllocationRecord | None:
        return self._observation_alone(int(self.index.places["observed_at"][row])).observed

    def decision(self, entry: int) -> tuple[DecisionRecord, OutcomeRecord | None]:
        entries = self.index.entries
        made = _decisions.decode(self._block(int(entries["offset"][entry]), int(entries["length"][entry])))
        outcome = self.index.outcomes.get(entry)
        return made, None if outcome is None else _outcomes.decode(self._block(*outcome))

    def _observation_alone(self, row: int) -> ObservationRecord:
        places = self.index.places
        return _observations.decode(self._block(int(places["offset"][row]), int(places["length"][row])))
