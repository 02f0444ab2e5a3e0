"""What `springtide control` does: a request that makes sense is put into the file that the run reads."""

from __future__ import annotations

import getpass
from pathlib import Path

from springtide.errors import SpringtideError, nearest
from springtide.journal.controls import NEEDED, ControlRequest, append_control, refusal
from springtide.journal.reading import Journal, read_journal
from springtide.journal.records import EndRecord, ObservationRecord
from springtide.journal.writing import is_being_written


def ask(path: Path, do: str, words: list[str]) -> str:
    """Ask the run for something; what is said of it."""
    request = _request(do, words)
    journal = read_journal(path)
    hosts = _hosts_of_a_run_that_goes_on(journal)
    if why := refusal(request, journal.run.application, hosts):
        raise SpringtideError(why)
    append_control(path, request)
    return (
        f"Asked for: {request}. It takes effect at the end of the next interval ({journal.run.interval_s:g} s),"
        f" and `springtide explain {path} --changes` tells what came of it."
    )


def _request(do: str, words: list[str]) -> ControlRequest:
    if do not in NEEDED:
        raise SpringtideError(f"there is no control {do!r}; {nearest(do, NEEDED)}")
    needed = NEEDED[do]
    if len(words) != len(needed):
        usage = " ".join([do, *(name.upper() for name in needed)])
        raise SpringtideError(f"{' '.join([do, *words])!r}: write it as {usage!r}")
    said = dict(zip(needed, words, strict=True))
    return ControlRequest(
        do=do,
        operator=said.get("operator"),
        host=said.get("host"),
        replicas=_replicas(said["replicas"]) if "replicas" in said else None,
        who=_who(),
    )


def _replicas(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SpringtideError(f"a number of replicas cannot be {text!r}: write a whole number") from None


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return "somebody"


def _hosts_of_a_run_that_goes_on(journal: Journal) -> list[str]:
    """The hosts there were last; a run that is over, or was never live, is refused."""
    if not journal.run.live:
        raise SpringtideError(f"journal {journal.path} is of a simulated run: only a live one can be steered")
    if isinstance(next(journal.newest_first(), None), EndRecord):
        raise SpringtideError(f"journal {journal.path} is of a run that has ended")
    if not is_being_written(journal.path):
        raise SpringtideError(f"journal {journal.path} is of a run that was killed: nobody writes it any more")
    latest = next((record for record in journal.newest_first() if isinstance(record, ObservationRecord)), None)
    return [] if latest is None else [host.name for host in latest.hosts]
