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

# Tasks that say where they run (every worker leads a session) and end when they may. The JVMs are made to start soon.
DRIVER = """
import os, sys, time
from pathlib import Path
from pyspark import SparkConf, SparkContext, TaskContext

def start_driver(master_url):
    conf = SparkConf().setMaster(master_url).setAppName("count").setAll({
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }.items())
    return SparkContext(conf=conf)

def count_rows(context, notes, partitions):
    def count(partition, rows):
        (notes / f"{partition}.{TaskContext.get().attemptNumber()}.{os.getsid(0)}").touch()
        while not (notes / "go").exists():
            time.sleep(0.02)
        yield sum(1 for _ in rows)
    return context.parallelize(range(1000), partitions).mapPartitionsWithIndex(count).sum()
"""

COUNTING_DRIVER = f"""{DRIVER}
context = start_driver(sys.argv[1])
print("counted", count_rows(context, Path(sys.argv[2]), partitions=2))
context.stop()
"""

CLUSTER_AND_DRIVER = f"""{DRIVER}
from springtide.backends.spark.cluster.standalone import StandaloneCluster
with StandaloneCluster(workers=1) as cluster:
    count_rows(start_driver(cluster.master_url), Path(sys.argv[1]), partitions=1)
"""

CLUSTER = """
from springtide.backends.spark.cluster.standalone import StandaloneCluster
with StandaloneCluster(workers=1):
    print("up")
"""


def test_a_job_goes_on_when_a_host_vanishes(tmp_path: Path) -> None:
    with StandaloneCluster(workers=2) as cluster:
        assert cluster.workers == {"worker-0": "ALIVE", "worker-1": "ALIVE"}
        with python(COUNTING_DRIVER, cluster.master_url, str(tmp_path)) as driver:
            wait_for(lambda: len(attempts(tmp_path)) == 2 or driver.poll() is not None, "both tasks run")
            before = attempts(tmp_path)
            assert len({session for _, _, session in before}) == 2, "the tasks run on different workers"

            cluster.kill_worker("worker-0")
            assert cluster.workers == {"worker-0": "DEAD", "worker-1": "ALIVE"}
            running = [session for _, _, session in before if processes(session=session)]
            assert len(running) == 1, "all of worker-0 is gone, executor and Python worker too, and all else is not"

            (tmp_path / "go").touch()
            assert driver.communicate(timeout=60)[0] == "counted 1000\n"
            ((partition, attempt, session),) = attempts(tmp_path) - before
            assert (attempt, session) == (1, running[0])
            assert (partition, 0, running[0]) not in before, "what was lost is done again, where there still is a host"
        folder = cluster.folder
        assert processes(of=folder)
    assert not processes(of=folder)
    assert not folder.exists()


def test_hosts_come_and_go_and_an_exception_ends_it_all() -> None:
    with pytest.raises(ZeroDivisionError), StandaloneCluster(workers=0) as cluster:  # noqa: PT012 - a story that ends badly
        assert cluster.workers == {}
        assert cluster.add_worker() == "worker-0"
        assert cluster.workers == {"worker-0": "ALIVE"}
        cluster.stop_worker("worker-0")
        assert cluster.workers == {"worker-0": "DEAD"}
        with pytest.raises(SpringtideError, match="no worker 'worker-0' runs"):
            cluster.kill_worker("worker-0")
        raise ZeroDivisionError
    assert not processes(of=cluster.folder)
    assert not cluster.folder.exists()
    cluster.stop()
    with pytest.raises(SpringtideError, match="was stopped"):
        cluster.add_worker()


def test_a_killed_python_process_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with python(CLUSTER_AND_DRIVER, str(tmp_path)) as owner:
        wait_for(lambda: bool(attempts(tmp_path)) or owner.poll() is not None, "a task runs")
        (folder,) = tmp_path.glob("springtide-cluster-*")
        assert len(processes(of=folder)) >= 5, "the keeper, a master, a worker, its executor and a Python worker"
        owner.kill()
        owner.wait()
        wait_for(lambda: not processes(of=folder) and not processes(session=owner.pid), "all its processes end")
        wait_for(lambda: not folder.exists(), "its folder is removed")


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
        ports = iter([taken, standalone._free_port()])
        monkeypatch.setattr(standalone, "_free_port", lambda: next(ports))
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
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
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
    """Processes that were given a cluster's folder (command line or environment), or that belong to a session."""
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
