"""Models that are trained anew while an application runs, from its own journal.

Rules: it happens in a process of its own, with the lowest priority, one at a time; new models are loaded in a thread. Whoever
decides only ever looks whether something is ready, and goes on with what it has if it is not, or if it went wrong. The process
ends with the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from springtide.errors import SpringtideError
from springtide.forecast.running.serving import Served, served
from springtide.forecast.trained import open_trained

Loaded = tuple[list[Served], dict[str, str]]

_LOWEST_PRIORITY = 19
_ENDS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrained:
    """What came of it: models that are ready, or why there are none."""

    loaded: Loaded | None = None
    problem: str = ""


class Retraining:
    """Begins to train `every_s` seconds after the run began, and again and again."""

    def __init__(self, folder: Path, command: Sequence[str], sources: Sequence[str], every_s: float) -> None:
        """`command` trains models of these sources into `folder`."""
        self._folder, self._command, self._sources, self._every_s = folder, tuple(command), tuple(sources), every_s
        self._due_s: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="springtide-models")
        self._loading: Future[Loaded] | None = None

    def look(self, now_s: float) -> Retrained | None:
        """What has become ready since the last look; nothing, most of the time. Begins to train if it is time to."""
        if self._due_s is None:
            self._due_s = now_s + self._every_s
        if self._loading is not None:
            return self._loaded()
        if self._process is not None:
            return self._trained()
        if now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            self._process = self._start()
        return None

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with self._said.open("wb") as said:
            return subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=said, stdin=subprocess.DEVNULL, start_new_session=True
            )

    @property
    def _said(self) -> Path:
        """What the process says, for whoever wants to know why it failed."""
        return self._folder.with_name(f"{self._folder.name}.log")

    def _trained(self) -> Retrained | None:
        code = self._process.poll() if self._process is not None else None
        if code is None:
            return None
        self._process = None
        if code != 0:
            return Retrained(problem=f"training anew failed ({_last_line(self._said) or f'exit code {code}'})")
        self._loading = self._thread.submit(self._load)
        return None

    def _load(self) -> Loaded:
        return served(open_trained(self._folder), self._sources)

    def _loaded(self) -> Retrained | None:
        if self._loading is None or not self._loading.done():
            return None
        loading, self._loading = self._loading, None
        try:
            return Retrained(loaded=loading.result())
        except SpringtideError as error:
            return Retrained(problem=str(error))


def retraining_command(journal: Path, folder: Path, models: str) -> list[str]:
    """What trains models from a journal: `springtide forecast retrain`, behind everything else that runs."""
    springtide = [sys.executable, "-m", "springtide", "forecast", "retrain", str(journal), "--to", str(folder)]
    return [*_politely(), *springtide, "--models", models]


def _politely() -> list[str]:
    return ["nice", "-n", str(_LOWEST_PRIORITY)] if os.name == "posix" else []


def _last_line(file: Path) -> str:
    try:
        lines = file.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
