"""All checks that need no Spark, with the facts of this machine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from springtide.doctor import machine, software
from springtide.doctor.finding import Finding
from springtide.doctor.machine import MB, Executors


def examined(folder: str, executors: Executors) -> list[Finding]:
    """Everything but Spark itself: in well under a second, of which Java takes the most."""
    package = _package("pyspark")
    temporary = Path(tempfile.gettempdir())
    return [
        software.python(sys.version_info[:3]),
        software.java(os.environ.get("JAVA_HOME"), shutil.which("java"), _java_says()),
        software.pyspark(_version("pyspark"), whole=package is not None and (package / "jars").is_dir()),
        software.spark_home(os.environ.get("SPARK_HOME"), package),
        software.worker_python(os.environ.get("PYSPARK_PYTHON"), sys.executable),
        software.pandas(_version("pandas")),
        machine.memory(available_mb(), executors),
        machine.cores(_cores(), executors),
        machine.disk(_free_mb(folder), folder if "://" in folder else str(Path(folder).absolute())),
        machine.writing(folder),
        machine.temporary(
            temporary,
            writable=os.access(temporary, os.W_OK | os.X_OK),
            executable=not os.statvfs(temporary).f_flag & os.ST_NOEXEC if hasattr(os, "ST_NOEXEC") else True,
            free_mb=shutil.disk_usage(temporary).free // MB,
        ),
        machine.compiled_code(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "springtide"),
        machine.open_files(_open_files()),
        machine.loopback(),
        machine.dashboard_port(),
        software.jax(_version("jax")),
    ]


def _package(name: str) -> Path | None:
    """Where a package lies; found without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _version(name: str) -> str | None:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _java_says() -> str | None:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else "java"
    try:
        asked = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stderr + asked.stdout


def available_mb(proc: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Memory that may still be used, by the machine's account or by that of the container that this is in."""
    with suppress(OSError, StopIteration, ValueError):
        said = next(line for line in proc.read_text().splitlines() if line.startswith("MemAvailable:"))
        available = int(said.split()[1]) // 1024
        with suppress(OSError, ValueError):  # without a limit it is no number
            limit = int((group / "memory.max").read_text())
            available = min(available, (limit - int((group / "memory.current").read_text())) // MB)
        return available
    return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_mb(folder: str) -> int | None:
    if "://" in folder:
        return None
    return shutil.disk_usage(machine.nearest_folder(Path(folder).absolute())).free // MB


def _open_files() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
