"""A real Spark standalone cluster on this machine, from the pip package alone: for tests, benchmarks and users without one.

    with StandaloneCluster(workers=2) as cluster:
        SparkSession.builder.master(cluster.master_url).config("spark.executor.memory", "512m")...

Rules:
* A worker stands for a host: it can be added, stopped, and killed with everything that ran on it.
* Nothing is waited for by time. A worker is up when the master says so, and lost when the master says so.
* Nothing outlives the Python process that started the cluster. All that a cluster writes is in one temporary folder, and
  every daemon leads a session of its own, in which everything it starts stays. A small process, the keeper, makes the
  folder, waits for the Python process to end, in whatever way (SIGKILL too), kills the sessions and removes the folder.
  Linux could do the killing by itself (PR_SET_PDEATHSIG), but it would do so as soon as the *thread* that started the
  cluster ended, and leave the executors and the folder.
* A daemon may run only while the folder has a place for its process id: see `_start` and `_sweep`. So none is overlooked,
  wherever an interrupt strikes.
* Neither the user's Spark settings (SPARK_*, conf/) nor the network's proxies have a say here.
"""

from __future__ import annotations

import http.client
import importlib.util
import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from springtide.errors import SpringtideError, nearest, require

_HOST = "127.0.0.1"
_MASTER = "master"
_SMALLEST_EXECUTOR_MB = 450  # Spark refuses executors with less: 1.5 times what it reserves for itself

_POLL_S = 0.05
_START_WITHIN_S = 120.0  # a start takes 5 to 25 s; a worker that misses the master tries again after 5 to 15 s
_END_WITHIN_S = 30.0

# Ends of logs that hide the cause: the depths of a stack trace, a JVM's farewell, and bash lost in spark-class after it.
_TELL_NOTHING = re.compile(
    r"at |\.\.\. |Error: (Could not create the Java Virtual Machine|A fatal exception)|.*spark-class: line \d+: CMD: bad array"
)

# Daemons do little and should start soon: without the optimising compiler they need half the time or less. Executors are
# not given these.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class StandaloneCluster:
    """A master and its workers, up when built and gone when stopped.

    Every worker offers `cores` (more than the machine has, if you like) and `memory_mb`, of which an executor takes
    `spark.executor.memory`: set that no higher, for Spark's default of 1 GB is more than the default here.
    """

    def __init__(self, workers: int = 2, cores: int = 1, memory_mb: int = 700) -> None:
        require(workers >= 0, f"a cluster has no {workers} workers: ask for 0 or more")
        require(cores >= 1, f"a worker has no {cores} cores: ask for 1 or more")
        require(
            memory_mb >= _SMALLEST_EXECUTOR_MB,
            f"no executor fits a worker of {memory_mb} MB: ask for {_SMALLEST_EXECUTOR_MB} MB or more",
        )
        self._cores = cores
        self._memory_mb = memory_mb
        self._spark_home = _find_spark_home()
        self._names = (f"worker-{number}" for number in itertools.count())
        self._daemons: dict[str, _Daemon] = {}
        self._keeper: subprocess.Popen[bytes] | None
        self._keeper, self._folder = _start_keeper()
        try:
            for part in ("daemons", "logs", "conf", "tmp"):
                (self._folder / part).mkdir()
            self._start_master()
            for worker in [self._launch_worker() for _ in range(workers)]:
                self._wait_until_up(worker)
        except BaseException:
            self.stop()
            raise

    @property
    def master_url(self) -> str:
        """What a driver connects to: `spark://host:port`."""
        return f"spark://{_HOST}:{self._port}"

    @property
    def folder(self) -> Path:
        """Where the daemons' logs (`logs/`) and the executors' (`work/`) are until the cluster is stopped."""
        return self._folder

    @property
    def workers(self) -> dict[str, str]:
        """Every worker there was and its state, as the master sees it: ALIVE, DEAD, ..."""
        status = self._ask_master(within_s=_END_WITHIN_S)
        if status is None:
            raise SpringtideError("the cluster's master does not answer: the cluster was stopped or has failed; start another")
        return _states(status)

    def add_worker(self) -> str:
        """Start one more worker; its name, once it is up."""
        if self._keeper is None:
            raise SpringtideError("the cluster was stopped: start another")
        worker = self._launch_worker()
        try:
            self._wait_until_up(worker)
        except BaseException:
            self._end(worker)
            raise
        return worker.name

    def stop_worker(self, name: str) -> None:
        """A host that is given back: the worker ends its executors and itself (SIGTERM)."""
        worker = self._running(name)
        worker.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(_END_WITHIN_S)
        self._end(worker)
        self._wait_until_lost(name)

    def kill_worker(self, name: str) -> None:
        """A host that vanishes: SIGKILL to the worker, its executors and their Python workers."""
        self._end(self._running(name))
        self._wait_until_lost(name)

    def stop(self) -> None:
        """End everything and remove the folder; stopping twice is stopping once."""
        # Daemons of a cluster that goes away have nothing to save, so they are not asked first.
        _sweep(self._folder)
        for daemon in self._daemons.values():
            daemon.process.wait()
        self._daemons.clear()
        if self._keeper is not None:
            self._keeper.communicate(b"done")
            self._keeper = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _start_master(self) -> None:
        self._port, self._webui_port = _two_free_ports()
        address = ["--host", _HOST, "--port", str(self._port), "--webui-port", str(self._webui_port)]
        # On a port that is taken, Spark would go on to the next one and nobody would find it there.
        options = "-Dspark.port.maxRetries=0 -Dspark.master.rest.enabled=false"
        master = self._launch(_MASTER, ["org.apache.spark.deploy.master.Master", *address], {"SPARK_MASTER_OPTS": options})
        self._wait_until_up(master)

    def _launch_worker(self) -> _Daemon:
        name = next(self._names)
        offer = ["--host", _HOST, "--cores", str(self._cores), "--memory", f"{self._memory_mb}m"]
        places = ["--webui-port", "0", "--work-dir", str(self._folder / "work" / name)]
        command = ["org.apache.spark.deploy.worker.Worker", *offer, *places, self.master_url]
        # With this, the master knows the worker by the name that we know it by.
        return self._launch(name, command, {"SPARK_WORKER_OPTS": f"-Dspark.worker.idPattern={name}"})

    def _launch(self, name: str, command: list[str], options: Mapping[str, str]) -> _Daemon:
        spark_class = str(self._spark_home / "bin" / "spark-class")
        environment = {**_environment(self._spark_home, self._folder), **options}
        daemon = _start(name, [spark_class, *command], environment, self._folder)
        self._daemons[name] = daemon
        return daemon

    def _wait_until_up(self, daemon: _Daemon) -> None:
        needed = {_MASTER: self._daemons[_MASTER], daemon.name: daemon}.values()

        def settled() -> bool:
            return any(each.has_ended for each in needed) or self._knows(daemon.name)

        in_time = _happens(settled, within_s=_START_WITHIN_S)
        for each in needed:
            if each.has_ended:
                raise _failed_start(each)
        if not in_time:
            raise _failed_start(daemon)

    def _wait_until_lost(self, name: str) -> None:
        if not _happens(lambda: self.workers.get(name) != "ALIVE", within_s=_END_WITHIN_S):
            raise SpringtideError(f"{name} was ended, but the master still counts on it after {_END_WITHIN_S:g} s")

    def _knows(self, name: str) -> bool:
        status = self._ask_master(within_s=1.0) or {}  # it will be asked again
        return (status.get("status") if name == _MASTER else _states(status).get(name)) == "ALIVE"

    def _ask_master(self, *, within_s: float) -> Mapping[str, Any] | None:
        """The master's own account of the cluster, or nothing if it does not answer."""
        connection = http.client.HTTPConnection(_HOST, self._webui_port, timeout=within_s)
        try:
            connection.request("GET", "/json/")
            status: Mapping[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return status

    def _running(self, name: str) -> _Daemon:
        workers = self._daemons.keys() - {_MASTER}
        if name not in workers:
            raise SpringtideError(f"no worker {name!r} runs; {nearest(name, workers)}")
        return self._daemons[name]

    def _end(self, worker: _Daemon) -> None:
        """Kill whatever of it still runs, and forget it."""
        _kill_session(worker.process.pid)
        worker.process.wait()
        worker.place.unlink(missing_ok=True)
        self._daemons.pop(worker.name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Daemon:
    """A JVM of Spark's that leads a session, the file that stands for it, and its log."""

    name: str
    process: subprocess.Popen[bytes]
    place: Path
    log: Path

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None


def _start(name: str, command: list[str], environment: Mapping[str, str], folder: Path) -> _Daemon:
    """Start a daemon that signs in before it becomes one, with an empty file named like its process id.

    Where it cannot sign in, the cluster is being swept away, and it does not start.
    """
    sign_in = ["/bin/sh", "-c", ': >"$0/$$" && exec "$@"', str(folder / "daemons")]
    log = folder / "logs" / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*sign_in, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return _Daemon(name=name, process=process, place=folder / "daemons" / str(process.pid), log=log)


def _sweep(folder: Path) -> None:
    """Kill every daemon that has signed in, let no other do so, and remove the folder. May be interrupted and repeated."""
    signed_in = folder / "swept"
    with suppress(FileNotFoundError):
        (folder / "daemons").rename(signed_in)
    if signed_in.is_dir():
        for place in signed_in.iterdir():
            _kill_session(int(place.name))
    shutil.rmtree(folder, ignore_errors=True)


def _kill_session(leader: int) -> None:
    """SIGKILL to a daemon and to all it has started; returns when none of it runs."""

    def none_left() -> bool:
        # Again each time, for one that was just being started may have been missed.
        targets = _session(leader)
        for target in targets:
            with suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
        return not targets

    _happens(none_left, within_s=_END_WITHIN_S)


def _session(leader: int) -> Set[int]:
    """What to kill to end a session: ids of the processes that run in it; where there is no /proc, its first process group.

    The group has the daemon and its executors; their Python workers have groups of their own and end when their executor does.
    """
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        try:
            os.killpg(leader, 0)
        except (ProcessLookupError, PermissionError):  # macOS forbids what concerns only zombies
            return set()
        return {-leader}
    running = set()
    for entry in proc.iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                # "pid (name) state parent group session ...", and a name may have anything in it
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    running.add(int(entry.name))
    return running


def _start_keeper() -> tuple[subprocess.Popen[bytes], Path]:
    """The process that sweeps when this one is gone (this module, run as a program), and the folder that it has made."""
    place = tempfile.gettempdir()
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, place, str(os.getpid())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # its own: it would keep ours open after our end
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert keeper.stdout is not None
    folder = os.fsdecode(keeper.stdout.readline().rstrip(b"\n"))
    if not folder:
        complaints = keeper.communicate()[1].decode(errors="replace").splitlines()
        raise SpringtideError(f"cannot start a cluster: see that {place} can be written to ({''.join(complaints[-1:])})")
    return keeper, Path(folder)


def _keep(place: str, owner: int) -> None:
    """Make a folder, and sweep it when the owner says so or is gone.

    Its end of the pipe closes when it ends, unless it had forked and that process lives on: then its id tells.
    """
    folder = tempfile.mkdtemp(prefix="springtide-cluster-", dir=place)
    with suppress(BrokenPipeError):  # it is gone already
        os.write(sys.stdout.fileno(), os.fsencode(folder) + b"\n")
    while not select.select([sys.stdin], [], [], 1.0)[0] and os.getppid() == owner:
        pass
    _sweep(Path(folder))


def _find_spark_home() -> Path:
    """The folder of the pyspark package, which is a whole Spark; found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / "bin" / "spark-class").exists():
            return Path(place)
    raise SpringtideError("no Spark is installed in this environment: run `pip install pyspark` (pyspark-client is not enough)")


def _environment(spark_home: Path, folder: Path) -> dict[str, str]:
    """What the daemons see, and their executors after them."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    tmp = folder / "tmp"
    # A JVM that is killed leaves what it unpacked (RocksDB's library alone is tens of MB): not in /tmp, then.
    jvm_options = f'{inherited.get("JAVA_TOOL_OPTIONS", "")} -Djava.io.tmpdir="{tmp}" -XX:-UsePerfData'
    return inherited | {
        "SPARK_HOME": str(spark_home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _QUICK_START,
        "SPARK_LAUNCHER_OPTS": _QUICK_START,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_TOOL_OPTIONS": jvm_options.strip(),
        "TMPDIR": str(tmp),
    }


def _two_free_ports() -> tuple[int, int]:
    with socket.create_server((_HOST, 0)) as one, socket.create_server((_HOST, 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def _states(status: Mapping[str, Any]) -> dict[str, str]:
    return {worker["id"]: worker["state"] for worker in status.get("workers", ())}


def _happens(condition: Callable[[], bool], *, within_s: float) -> bool:
    """Wait for it; whether it came about in time."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(_POLL_S)
    return True


def _failed_start(daemon: _Daemon) -> SpringtideError:
    log = daemon.log.read_text(errors="replace")
    lines = [line for line in map(str.strip, log.splitlines()) if line and not _TELL_NOTHING.match(line)]
    last = textwrap.shorten(lines[-1], 200, placeholder="...") if lines else "(nothing)"
    fate = "ended" if daemon.has_ended else f"was not up in {_START_WITHIN_S:g} s"
    return SpringtideError(f"Spark's {daemon.name} {fate}: {_advice(log)} (the last line of its log: {last})")


def _advice(log: str) -> str:
    if "BindException" in log:
        return "another program took its port in the meantime; try again"
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        return f"JAVA_HOME is {home}, where there is no bin/java; set it to a JDK 17 or newer, or unset it"
    if not home and shutil.which("java") is None:
        return "there is no java on PATH; install a JDK 17 or newer, and put it there or name its folder in JAVA_HOME"
    return "see that `java -version` says 17 or newer and that 300 MB of memory are free for each worker and the master"


if __name__ == "__main__":
    _keep(sys.argv[1], owner=int(sys.argv[2]))
