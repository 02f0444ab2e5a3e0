"""What the machine has: memory, cores, disk, ports, and places to write to."""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from springtide.doctor.finding import Finding, ok, problem, warning
from springtide.errors import SpringtideError

MB = 2**20
DRIVER_MB, JVM_OVERHEAD_MB = 1024, 424  # of the driver, and of each executor beyond what it may use
LITTLE_DISK_MB, TOO_LITTLE_DISK_MB = 5 * 1024, 512
LITTLE_TEMP_MB, TOO_LITTLE_TEMP_MB = 1024, 200  # every JVM unpacks RocksDB's library there, tens of MB
FEW_FILES, TOO_FEW_FILES = 4096, 1024
DASHBOARD_PORT = 8765
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """The executors that a run on this machine may have at once."""

    most: int
    cores: int
    memory_mb: int

    @property
    def needed_mb(self) -> int:
        """With the driver.

        >>> Executors(most=4, cores=1, memory_mb=600).needed_mb
        5120
        """
        return DRIVER_MB + self.most * (self.memory_mb + JVM_OVERHEAD_MB)


def memory(available_mb: int | None, executors: Executors) -> Finding:
    """
    >>> memory(4000, Executors(most=4, cores=1, memory_mb=600)).level.value
    'warning'
    """
    wanted = f"{executors.most} executors of {executors.memory_mb} MB and the driver may take {executors.needed_mb:,} MB"
    if available_mb is None:
        return warning("memory", "what is free is not known here", f"see to it yourself: {wanted}")
    found = f"{available_mb:,} MB are free; {wanted}"
    if available_mb < DRIVER_MB + executors.memory_mb + JVM_OVERHEAD_MB:
        return problem("memory", found, "not even one executor fits: free some, or use --master with a cluster")
    if available_mb < executors.needed_mb:
        return warning("memory", found, "allow fewer executors (--hosts), or smaller ones (--memory)")
    return ok("memory", found)


def cores(count: int, executors: Executors) -> Finding:
    wanted = executors.most * executors.cores
    found = f"{count} for up to {executors.most} executors of {executors.cores}"
    if count < wanted:
        return warning(
            "cores",
            found,
            "executors share them: rows that compute take longer the more executors there are, and a new one's start slows all",
        )
    return ok("cores", found)


def disk(free_mb: int | None, folder: str) -> Finding:
    """Where checkpoints, state and edges go."""
    if free_mb is None:
        return ok("disk", f"{folder} is no local folder: what is free there is not looked at")
    found = f"{free_mb:,} MB are free in {folder}"
    if free_mb < TOO_LITTLE_DISK_MB:
        return problem("disk", found, "state and checkpoints will not fit: free some, or name another --folder")
    if free_mb < LITTLE_DISK_MB:
        return warning("disk", found, "enough for a demonstration: state and edges grow with keys and with what waits")
    return ok("disk", found)


def writing(folder: str) -> Finding:
    """Write a file where state goes, and take it away again."""
    if "://" in folder:
        return _writing_far_away(folder)
    path = Path(folder).absolute()
    if path.exists() and not path.is_dir():
        return problem("folder", f"{path} is a file", "name another --folder")
    existing = nearest_folder(path)
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return problem(
            "folder", f"{existing} cannot be written to: {error.strerror}", "get the permission, or name another --folder"
        )
    return ok("folder", f"{path} can be written to")


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the one that it would be made in."""
    return next(place for place in (path, *path.parents) if place.is_dir())


def _writing_far_away(folder: str) -> Finding:
    from springtide.backends.spark.files import Folder  # noqa: PLC0415 - Arrow, which a local folder does not need

    place = Folder(folder).folder(f"springtide-doctor-{os.getpid()}")
    try:
        place.create()
        place.write_json("written.json", {})
        place.remove()
    except (SpringtideError, OSError) as error:
        return problem("folder", f"{folder}: {error}", "see that the address is right, and that this account may write there")
    return ok("folder", f"{folder} can be written to")


def temporary(folder: Path, *, writable: bool, executable: bool, free_mb: int) -> Finding:
    """Where Spark unpacks and spills: `executable` if a library that lies there may be loaded."""
    if not writable:
        return problem("temporary folder", f"{folder} cannot be written to", "set TMPDIR to a folder that can")
    if not executable:
        return problem(
            "temporary folder",
            f"{folder} is mounted noexec, and RocksDB loads its library from there",
            "add --conf spark.driver.extraJavaOptions=-Djava.io.tmpdir=... and the same for spark.executor",
        )
    found = f"{folder}, {free_mb:,} MB are free"
    if free_mb < TOO_LITTLE_TEMP_MB:
        return problem("temporary folder", found, "it is full: free some, or set TMPDIR to another folder")
    if free_mb < LITTLE_TEMP_MB:
        return warning("temporary folder", found, "shuffles and JVMs write there: free some, or set TMPDIR to another folder")
    return ok("temporary folder", found)


def compiled_code(folder: Path) -> Finding:
    """Where the simulator's compiled inner loop is kept from run to run."""
    existing = nearest_folder(folder)
    if os.access(existing, os.W_OK | os.X_OK):
        return ok("compiled code", f"{folder} can be written to")
    return warning(
        "compiled code",
        f"{existing} cannot be written to",
        "every simulation compiles for 20 s: set XDG_CACHE_HOME to a folder",
    )


def open_files(limit: int | None) -> Finding:
    """`limit` is None if there is none."""
    if limit is None:
        return ok("open files", "no limit")
    if limit < TOO_FEW_FILES:
        return problem("open files", f"at most {limit:,}", "RocksDB and Spark need more: run `ulimit -n 65536` before")
    if limit < FEW_FILES:
        return warning("open files", f"at most {limit:,}", "many shards may need more: run `ulimit -n 65536` before")
    return ok("open files", f"at most {limit:,}")


def loopback() -> Finding:
    """Whether a program here can listen on this machine's own address and be reached there, as executors reach the driver."""
    try:
        with socket.create_server((_LOOPBACK, 0)) as server:
            server.settimeout(5.0)
            with socket.create_connection(server.getsockname(), timeout=5.0):
                server.accept()[0].close()
    except OSError as error:
        return problem(
            "ports",
            f"{_LOOPBACK} cannot be listened on and reached: {error}",
            "see to the firewall, or the container's network",
        )
    return ok("ports", f"{_LOOPBACK} can be listened on and reached")


def dashboard_port(port: int = DASHBOARD_PORT) -> Finding:
    try:
        socket.create_server((_LOOPBACK, port)).close()
    except OSError:
        return warning("dashboard", f"port {port} is taken", "another dashboard may run: give this one another port")
    return ok("dashboard", f"port {port} is free")
