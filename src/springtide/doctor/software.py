"""The programs and libraries that Springtide runs with."""

from __future__ import annotations

import re
from pathlib import Path

from springtide.doctor.finding import Finding, ok, problem, warning

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA, NEWEST_KNOWN_JAVA = 17, 25
OLDEST_SPARK = (4, 2)
KNOWN_SPARK = ("4.3.0",)  # with these every internal that Springtide relies on has been tried
OLDEST_PANDAS, FIRST_PANDAS_TOO_NEW = (2, 2), (3,)


def python(version: tuple[int, ...]) -> Finding:
    """
    >>> python((3, 10, 4)).advice
    'make the environment anew with Python 3.11 or newer'
    """
    said = ".".join(map(str, version[:3]))
    if version < OLDEST_PYTHON:
        return problem("Python", said, "make the environment anew with Python 3.11 or newer")
    return ok("Python", said)


def java(home: str | None, on_path: str | None, said: str | None) -> Finding:
    """`home` is JAVA_HOME, `said` what `java -version` answered, None if it could not be run.

    Spark takes the java of JAVA_HOME, if that is set, and does not look on PATH then.
    """
    if home and not Path(home, "bin", "java").is_file():
        return problem(
            "Java", f"JAVA_HOME is {home}, where there is no bin/java", "set it to a JDK 17 or newer, or unset it to use PATH"
        )
    if not home and on_path is None:
        return problem("Java", "there is none on PATH", "install a JDK 17 or newer, and put it on PATH or name it in JAVA_HOME")
    where = f"{home}/bin/java" if home else str(on_path)
    version = None if said is None else java_version(said)
    if version is None:
        return problem(
            "Java", f"{where} does not tell its version", "see what `java -version` says, and install a JDK 17 or newer"
        )
    if version < OLDEST_JAVA:
        return problem("Java", f"{version} in {where}", "Spark 4 needs 17 or newer: install one, and name it in JAVA_HOME")
    if version > NEWEST_KNOWN_JAVA:
        return warning(
            "Java", f"{version} in {where}", f"Spark may refuse it: if it does, use one from 17 to {NEWEST_KNOWN_JAVA}"
        )
    return ok("Java", f"{version} in {where}")


def java_version(said: str) -> int | None:
    """
    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_401"'), java_version("oops")
    (17, 8, None)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def pyspark(version: str | None, *, whole: bool) -> Finding:
    """`whole`: the package has Spark itself in it, and is not only a client of Spark Connect.

    >>> pyspark("4.1.2", whole=True).found
    '4.1.2'
    """
    if version is None:
        return problem("PySpark", "not installed", "run `pip install 'pyspark>=4.2'` in this environment")
    if not whole:
        return problem(
            "PySpark", f"{version} without Spark's jars", "pyspark-client is not enough: run `pip install 'pyspark>=4.2'`"
        )
    if numbers(version) < OLDEST_SPARK:
        return problem("PySpark", version, "Springtide needs 4.2 or newer: run `pip install --upgrade pyspark`")
    if version not in KNOWN_SPARK:
        return warning(
            "PySpark",
            f"{version}; known to work: {', '.join(KNOWN_SPARK)}",
            "Springtide uses Spark's internals: go by the checks of `springtide doctor` without --quick",
        )
    return ok("PySpark", f"{version}, a version that is known")


def spark_home(home: str | None, package: Path | None) -> Finding:
    """SPARK_HOME makes PySpark start another Spark than its own."""
    if not home or package is None or Path(home).resolve() == package.resolve():
        return ok("SPARK_HOME", "not set" if not home else "PySpark's own")
    if not Path(home, "bin", "spark-submit").is_file():
        return problem("SPARK_HOME", f"{home}, where there is no bin/spark-submit", "unset it, or name a Spark")
    return warning("SPARK_HOME", f"{home}, not PySpark's own", "see that both have the same version, or unset it")


def worker_python(chosen: str | None, own: str) -> Finding:
    """`springtide run` sets PYSPARK_PYTHON for its executors by itself; a session of the user's own does not."""
    if not chosen:
        return ok("PYSPARK_PYTHON", "not set; `springtide run` uses this Python for its executors")
    if _same_file(chosen, own):
        return ok("PYSPARK_PYTHON", "this Python")
    return warning(
        "PYSPARK_PYTHON",
        f"{chosen}, and this Python is {own}",
        "in a Spark session of your own, functions would run in another environment: set it to this Python",
    )


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return one == other


def pandas(version: str | None) -> Finding:
    """
    >>> pandas("3.0.1").advice
    "Spark does not support pandas 3 fully: run `pip install 'pandas<3'`"
    """
    if version is None:
        return problem("pandas", "not installed", "run `pip install 'pandas>=2.2,<3'`")
    if numbers(version) >= FIRST_PANDAS_TOO_NEW:
        return problem("pandas", version, "Spark does not support pandas 3 fully: run `pip install 'pandas<3'`")
    if numbers(version) < OLDEST_PANDAS:
        return problem("pandas", version, "it is too old: run `pip install 'pandas>=2.2,<3'`")
    return ok("pandas", version)


def jax(version: str | None) -> Finding:
    """JAX is an extra: only the training of neural forecasts needs it."""
    if version is None:
        return ok("JAX", "not installed: neural forecasts cannot be trained (`pip install 'springtide[neural]'` adds it)")
    return ok("JAX", f"{version}: neural forecasts can be trained")


def numbers(version: str) -> tuple[int, ...]:
    """
    >>> numbers("4.3.0"), numbers("3.0.0rc1"), numbers("2.13.0+local")
    ((4, 3, 0), (3, 0, 0), (2, 13, 0))
    """
    return tuple(int(part) for part in re.match(r"[\d.]*", version).group().split(".") if part)  # type: ignore[union-attr]
