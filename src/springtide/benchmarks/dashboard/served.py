"""`springtide dashboard` as a process of its own, and how much it works."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from springtide.errors import SpringtideError

_ENDS_WITHIN_S = 10.0
_ANSWERS_WITHIN_S = 30.0


class Served:
    """A dashboard that answers."""

    def __init__(self, process: subprocess.Popen[str], base: str) -> None:
        self.process = process
        self.base = base

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.base + path, timeout=_ANSWERS_WITHIN_S) as answer:
            return bytes(answer.read())

    def times_s(self) -> tuple[float, float]:
        """The time now, and the seconds of a core that it has used so far: not a number where the machine does not tell."""
        try:
            after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic(), float("nan")
        return time.monotonic(), (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(journal: Path) -> Iterator[Served]:
    """The command that a user types, until the end of the block: it answers from the first line of the block on."""
    command = [sys.executable, "-m", "springtide", "dashboard", str(journal), "--port", "0"]
    with ended(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        base = said.removeprefix("Dashboard: ").partition("/#")[0].strip()
        if not base.startswith("http://"):
            raise SpringtideError(f"the dashboard did not start: {said.strip() or 'it said nothing'}")
        yield Served(process, base)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the block."""
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_ENDS_WITHIN_S)
        process.kill()
        process.wait()
