"""A real cluster on one machine: hosts come, go and vanish while a job runs, and nothing is left behind, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from springtide.backends.spark.cluster import standalone
from springtide.backends.spark.cluster.standalone import StandaloneCluster
from springtide.errors import InvalidValue, SpringtideError

pytestmark = pytest.mark.spark

# What makes a JVM start soon: most of these tests' time is starting JVMs.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"

# A program with a cluster and a driver of its own. It kills a worker at the first line it is sent, and then waits for another.
# Its tasks say where they run (every worker leads a session) and end when they may.
PROGRAM = """
import os, sys, threading, time
from pathlib import Path
from pyspark import SparkConf, SparkContext, TaskContext
from springtide.backends.spark.cluster.standalone import StandaloneCluster

def start_driver(master_url):
    conf = SparkConf().setMaster(master_url).setAppName("count").setAll({
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": os.environ["SPARK_LAUNCHER_OPTS"],
        "spark.executor.extraJavaOptions": os.environ["SPARK_LAUNCHER_OPTS"],
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }.items())
    return SparkContext(conf=conf)

def count_rows(context, notes):
    def count(partition, rows):
        (notes / f"{partition}.{TaskContext.get().attemptNumber()}.{os.getsid(0)}").touch()
        while not (notes / "go").exists():
            time.sleep(0.02)
        yield sum(1 for _ in rows)
    print("counted", context.parallelize(range(1000), 2).mapPartitionsWithIndex(count).sum(), flush=True)

with StandaloneCluster(workers=2) as cluster:
    print(cluster.workers == {"worker-0": "ALIVE", "worker-1": "ALIVE"}, flush=True)
    context = start_driver(cluster.master_url)
    threading.Thread(target=count_rows, args=(context, Path(sys.argv[1])), daemon=True).start()
    input()
    cluster.kill_worker("worker-0")
    print(cluster.workers == {"worker-0": "DEAD", "worker-1": "ALIVE"}, flush=True)
    input()
"""

CLUSTER = """
from springtide.backends.spark.cluster.standalone import StandaloneCluster
with StandaloneCluster(workers=1):
    print("up")
"""


@pytest.mark.slow
def test_a_host_vanishes_and_the_job_goes_on_then_the_program_is_killed_and_nothing_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with python(PROGRAM, str(tmp_path)) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "True\n", "two workers are up"
        wait_for(lambda: len(attempts(tmp_path)) == 2 or program.poll() is not None, "both tasks run")
        before = attempts(tmp_path)
        assert len({session for _, _, session in before}) == 2, "they run on different workers"

        print("kill worker-0", file=program.stdin, flush=True)
        assert program.stdout.readline() == "True\n", "the master knows that one worker is lost and one is not"
        survivors = [session for _, _, session in before if processes(session=session)]
        assert len(survivors) == 1, "executor and Python worker are gone with their worker"

        (tmp_path / "go").touch()
        assert program.stdout.readline() == "counted 1000\n"
        (redone,) = attempts(tmp_path) - before
        assert redone[1:] == (1, survivors[0]), "what was lost was done again, where there still was a host"

        assert len(processes(of=tmp_path)) >= 6, "itself, its driver, the keeper, the master, a worker and its executor"
        program.kill()
        program.wait()
        wait_for(lambda: not processes(of=tmp_path), "all its processes end")
        wait_for(lambda: not any(tmp_path.glob("springtide-cluster-*")), "its folder is removed")


def test_hosts_come_and_go_and_an_exception_ends_it_all(own_folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), StandaloneCluster(workers=0) as cluster:  # noqa: PT012 - a story that ends badly
        assert cluster.workers == {}
        assert cluster.add_worker() == "worker-0"
        assert cluster.workers == {"worker-0": "ALIVE"}
        cluster.stop_worker("worker-0")
        assert cluster.workers == {"worker-0": "DEAD"}
        with pytest.raises(SpringtideError, match="no worker 'worker-0' runs"):
            cluster.kill_worker("worker-0")
        assert len(processes(of=own_folder)) == 2, "the master and the keeper"
        raise ZeroDivisionError
    assert not processes(of=own_folder)
    assert not any(own_folder.iterdir())
    cluster.stop()
    with pytest.raises(SpringtideError, match="was stopped"):
        cluster.add_worker()


def test_ctrl_c_while_starting_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with python(CLUSTER) as owner:
        wait_for(lambda: any(tmp_path.glob("springtide-cluster-*/daemons/*")) or owner.poll() is not None, "it starts a daemon")
        owner.send_signal(signal.SIGINT)
        assert owner.communicate(timeout=60)[0] == ""
        assert owner.returncode == -signal.SIGINT
    assert not processes(of=tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_port_that_is_taken(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupier:
        taken = occupier.getsockname()[1]
        _, free = standalone._two_free_ports()
        monkeypatch.setattr(standalone, "_two_free_ports", lambda: (taken, free))
        with pytest.raises(SpringtideError, match=rf"^Spark's master ended: another program took its port.*{taken}.*$"):
            StandaloneCluster()
    assert not any(own_folder.iterdir())


@pytest.mark.parametrize(
    ("java_home", "message"),
    [
        (None, r"^Spark's master ended: there is no java on PATH; install a JDK 17 .*log: JAVA_HOME is not set\)$"),
        ("/no/jdk", r"^Spark's master ended: JAVA_HOME is /no/jdk, where there is no bin/java.*No such file or directory\)$"),
    ],
)
def test_no_java(java_home: str | None, message: str, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir=own_folder.parent) as tools:
        for tool in ("bash", "dirname", "head"):
            Path(tools, tool).symlink_to(f"/bin/{tool}")
        monkeypatch.setenv("PATH", tools)
        if java_home:
            monkeypatch.setenv("JAVA_HOME", java_home)
        else:
            monkeypatch.delenv("JAVA_HOME", raising=False)
        with pytest.raises(SpringtideError, match=message):
            StandaloneCluster()
    assert not any(own_folder.iterdir())


def test_no_place_for_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(
        SpringtideError, match=r"^cannot start a cluster: see that .*missing can be written to \(FileNotFound.*\)$"
    ):
        StandaloneCluster()


@pytest.mark.parametrize(
    ("asked", "message"), [({"workers": -1}, "-1 workers"), ({"cores": 0}, "0 cores"), ({"memory_mb": 100}, "100 MB")]
)
def test_what_cannot_be_is_refused(asked: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        StandaloneCluster(**asked)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's clusters have their folders, and nothing else is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def python(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that leads a session; whatever of it still runs afterwards is killed, and its complaints are shown."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LAUNCHER_OPTS": QUICK_START},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            for pid in processes(session=process.pid):
                os.kill(pid, signal.SIGKILL)


def attempts(notes: Path) -> set[tuple[int, int, int]]:
    """Of each attempt at a task: partition, number, and the session it ran in."""
    found = (note.name.split(".") for note in notes.glob("*.*.*"))
    return {(int(partition), int(attempt), int(session)) for partition, attempt, session in found}


def processes(*, of: Path | None = None, session: int | None = None) -> list[int]:
    """Processes that were told of a folder (by command line or environment), or that belong to a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            state, _, _, its_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        mine = str(of).encode() in told if of else int(its_session) == session
        if mine and state != "Z":
            found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], bool], what: str, within_s: float = 90) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not in {within_s:g} s: {what}"
        time.sleep(0.02)
