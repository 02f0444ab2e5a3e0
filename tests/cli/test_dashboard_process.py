"""The dashboard beside a run: its address is passed on, and it is gone when the run is, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from springtide.cli import dashboard_process, running
from springtide.cli.dashboard_process import dashboard_beside, dashboard_command, with_port
from springtide.cli.results import Output
from springtide.errors import SpringtideError
from springtide.journal.reading import read_journal
from springtide.live import LiveRun

CLICKS = Path(__file__).parents[2] / "examples" / "clicks.py"
# Prints where it is and its process id, and waits; politely asked, it goes.
SERVER = "import os, signal; print(f'http://127.0.0.1:8765/#token=x {os.getpid()}'); signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SERVER}"


class Heard:
    """What is said, and a way to wait for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()

    def say(self, line: str) -> None:
        with self._more:
            self.lines.append(line)
            self._more.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.lines) >= count, timeout=60), self.lines
            return list(self.lines)


def gone(process: int, patience_s: float = 30.0) -> bool:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        threading.Event().wait(0.01)
    return False


def test_its_address_is_said_and_it_ends_with_the_block() -> None:
    heard = Heard()
    with dashboard_beside([sys.executable, "-c", SERVER], heard.say):
        (line,) = heard.wait_for(1)
        address, process = line.split()
        assert address == "http://127.0.0.1:8765/#token=x"
        os.kill(int(process), 0)

    assert gone(int(process))
    assert heard.lines == [line], "it was meant to end"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SpringtideError, MemoryError])
def test_it_ends_when_the_run_goes_wrong(error: type[BaseException]) -> None:
    heard = Heard()

    def run() -> None:
        with dashboard_beside([sys.executable, "-c", SERVER], heard.say):
            heard.wait_for(1)
            raise error

    with pytest.raises(error):
        run()
    assert gone(int(heard.lines[0].split()[1]))


def test_one_that_does_not_listen_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_process, "_ENDS_WITHIN_S", 0.2)
    heard = Heard()
    with dashboard_beside([sys.executable, "-c", STUBBORN], heard.say):
        (line,) = heard.wait_for(1)
    assert gone(int(line.split()[1]))


def test_one_that_fails_does_not_take_the_run_with_it() -> None:
    heard = Heard()
    command = [sys.executable, "-c", "import sys; sys.exit('springtide: port 8765 is taken')"]
    with dashboard_beside(command, heard.say):
        said = heard.wait_for(2)
    assert said == [
        "springtide: port 8765 is taken",
        "The dashboard has ended (exit code 1); the run goes on without it.",
    ]


def test_it_does_not_outlive_a_run_that_is_killed() -> None:
    """Nothing can tell it to end then; but the pipe closes."""
    child = (
        "import os, sys, threading, signal\n"
        "from springtide.cli.dashboard_process import _end_with\n"
        "threading.Thread(target=_end_with, args=(0,), daemon=True).start()\n"
        "print(os.getpid()); signal.pause()\n"
    )
    run = (
        "import os, signal, sys, threading\n"
        "from springtide.cli.dashboard_process import dashboard_beside\n"
        "said = threading.Event()\n"
        "def say(line): print(line, flush=True); said.set()\n"
        f"with dashboard_beside([sys.executable, '-c', {child!r}], say):\n"
        "    said.wait(60)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert gone(int(done.stdout))


def test_ctrl_c_is_for_the_run() -> None:
    heard = Heard()
    with dashboard_beside([sys.executable, "-c", SERVER], heard.say):
        (line,) = heard.wait_for(1)
        assert os.getpgid(int(line.split()[1])) != os.getpgid(0)


def test_the_command_names_the_journal_and_the_port() -> None:
    assert dashboard_command(Path("run.jsonl"), 9000)[1:] == [
        "-m", "springtide.cli.dashboard_process", "run.jsonl", "--port", "9000"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["run", "a.py"], ["run", "a.py"]),
        (["run", "a.py", "--dashboard"], ["run", "a.py", "--dashboard=8765"]),
        (["run", "--dashboard", "a.py"], ["run", "--dashboard=8765", "a.py"]),
        (["run", "--dashboard", "9000", "a.py"], ["run", "--dashboard", "9000", "a.py"]),
        (["dashboard", "run.jsonl"], ["dashboard", "run.jsonl"]),
        ([], []),
    ],
)
def test_the_port_may_be_left_out(given: list[str], meant: list[str]) -> None:
    assert with_port(given) == meant


# --- `springtide run --dashboard`, but for Spark --------------------------------------------------------------------------


class NoSpark(Exception):
    """The run got as far as Spark."""


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> list[LiveRun]:
    """`springtide run` with a fake dashboard, up to the moment at which the loop would begin; the run that would have been."""
    begun: list[LiveRun] = []

    def begin(live: LiveRun, *_: object, **__: object) -> None:
        begun.append(live)
        raise NoSpark

    monkeypatch.setattr(running, "session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(LiveRun, "run", begin)
    monkeypatch.setattr(running, "dashboard_command", lambda *_: [sys.executable, "-c", SERVER])
    return begun


def wishes(tmp_path: Path, **fields: object) -> running.Wishes:
    values: dict[str, object] = {
        "application": str(CLICKS), "options": [], "policy": None, "parameters": [], "guards": [], "slo_s": None,
        "folder": str(tmp_path / "app"), "master": None, "hosts": None, "start_hosts": None, "cores": 1, "memory_mb": 600,
        "settings": [], "scaling": "elastic", "interval_s": 5.0, "for_s": None, "until_drained": True, "models": None,
    }  # fmt: skip
    return running.Wishes(**{**values, **fields})  # type: ignore[arg-type]


def output(journal: Path | None = None) -> Output:
    return Output(as_json=False, plot=None, journal=journal)


def test_without_a_journal_there_is_one_in_the_runs_folder(
    without_spark: list[LiveRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NoSpark):
        running.run(wishes(tmp_path, dashboard_port=0), output())

    (journal,) = (tmp_path / "app").glob("journal-*.jsonl")
    assert read_journal(journal).run.live
    (live,) = without_spark
    assert live.journal == journal
    assert live.steering.__self__ is not None  # type: ignore[attr-defined] - the journal's


def test_a_folder_elsewhere_needs_a_journal_here(without_spark: list[LiveRun], tmp_path: Path) -> None:
    with pytest.raises(SpringtideError, match="name one with --journal"):
        running.run(wishes(tmp_path, dashboard_port=0, folder="hdfs://cluster/app"), output())


def test_a_run_that_is_refused_starts_no_dashboard(
    without_spark: list[LiveRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(running, "dashboard_beside", lambda *a: started.append(a))
    with pytest.raises(SpringtideError, match="there is no policy"):
        running.run(wishes(tmp_path, dashboard_port=0, policy="tidy"), output())
    assert started == []


def test_a_configuration_file_puts_somebody_in_charge(without_spark: list[LiveRun], tmp_path: Path) -> None:
    file = tmp_path / "charge.toml"
    file.write_text('policy = "static"\nslo_s = 7\nmin_hosts = 2\nmax_hosts = 3\n')
    with pytest.raises(NoSpark):
        running.run(wishes(tmp_path, config=file, hosts="1:2"), output())

    (live,) = without_spark
    assert live.policy_name == "static"
    assert live.application.slo.latency_s == 7.0
    assert (live.pool.min_hosts, live.pool.max_hosts) == (1, 2), "the command line goes before"


def test_without_a_dashboard_nothing_is_started_nor_written(
    without_spark: list[LiveRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never: Callable[..., None] = lambda *_: pytest.fail("nobody asked for it")  # noqa: E731
    monkeypatch.setattr(running, "dashboard_beside", never)
    with pytest.raises(NoSpark):
        running.run(wishes(tmp_path), output())
    assert not list(tmp_path.glob("**/*.jsonl"))
