"""The dashboard of a run that goes on, in a process of its own, so that it cannot slow the run down.

Rules: it begins before the run and ends with it, in whatever way the run ends: it is told to (SIGTERM), and it ends by itself
when the pipe from the run closes. If it ends before, the run says so and goes on. Ctrl-C is for the run, which ends it then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

DEFAULT_PORT = 8765
_ENDS_WITHIN_S = 5.0


def dashboard_command(journal: Path, port: int) -> list[str]:
    """`springtide dashboard`, which ends when nobody holds the other end of its standard input any more."""
    return [sys.executable, "-m", __name__, str(journal), "--port", str(port)]


@contextmanager
def dashboard_beside(command: Sequence[str], say: Callable[[str], None]) -> Iterator[None]:
    """The command runs as long as the block; what it prints, its address first of all, is said."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},  # its address is wanted at once
        text=True,
        errors="replace",
        start_new_session=True,
    )
    over = threading.Event()

    def forward() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip():
                say(line.rstrip())
        code = process.wait()
        if not over.is_set():
            say(f"The dashboard has ended (exit code {code}); the run goes on without it.")

    forwarding = threading.Thread(target=forward, name="springtide-dashboard", daemon=True)
    forwarding.start()
    try:
        yield
    finally:
        over.set()
        _end(process)
        forwarding.join(_ENDS_WITHIN_S)


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.terminate()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def with_port(arguments: Sequence[str]) -> list[str]:
    """`--dashboard` without a port has the default one; a command line knows only options with and without a value.

    >>> with_port(["run", "app.py", "--dashboard", "--json"])
    ['run', 'app.py', '--dashboard=8765', '--json']
    >>> with_port(["demo", "--dashboard", "9000"])
    ['demo', '--dashboard', '9000']
    """
    return [
        f"{word}={DEFAULT_PORT}" if word == "--dashboard" and not after.isdigit() else word
        for word, after in zip_longest(arguments, arguments[1:], fillvalue="")
    ]


def _end_with(standard_input: int) -> None:
    """End this process once the pipe is closed at its other end."""
    while os.read(standard_input, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _main() -> None:
    from springtide.cli.main import run  # it imports this module

    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    sys.argv = ["springtide", "dashboard", *sys.argv[1:]]
    run()


if __name__ == "__main__":
    _main()
