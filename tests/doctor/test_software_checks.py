"""Programs and libraries that are missing, too old, too new or in the wrong place are named, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from springtide.doctor import software
from springtide.doctor.finding import Finding, Level

SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment'


def assert_says(finding: Finding, level: Level, *words: str) -> None:
    assert finding.level is level, finding
    for word in words:
        assert word in f"{finding.found}; {finding.advice}", finding


@pytest.fixture
def jdk(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    return tmp_path


def test_a_java_home_that_points_nowhere_is_a_problem_even_if_there_is_a_java_on_the_path(tmp_path: Path) -> None:
    found = software.java(str(tmp_path / "gone"), "/usr/bin/java", SEVENTEEN)
    assert_says(found, Level.PROBLEM, "JAVA_HOME", str(tmp_path / "gone"), "unset it")


def test_no_java_at_all() -> None:
    assert_says(software.java(None, None, None), Level.PROBLEM, "none on PATH", "install a JDK 17 or newer")


@pytest.mark.parametrize(
    ("said", "level"),
    [
        (SEVENTEEN, Level.OK),
        ('openjdk version "21.0.2" 2024-01-16', Level.OK),
        ('java version "1.8.0_401"', Level.PROBLEM),
        ('openjdk version "11.0.22" 2024-01-16', Level.PROBLEM),
        ('openjdk version "31-ea" 2029-09-18', Level.WARNING),
        ("Error occurred during initialization of VM", Level.PROBLEM),
    ],
)
def test_the_version_of_java_decides(jdk: Path, said: str, level: Level) -> None:
    assert software.java(str(jdk), None, said).level is level
    assert software.java(None, "/usr/bin/java", said).level is level


def test_an_old_spark_is_a_problem_and_one_that_nobody_has_tried_a_warning() -> None:
    assert_says(software.pyspark(None, whole=False), Level.PROBLEM, "not installed", "pip install")
    assert_says(software.pyspark("4.3.0", whole=False), Level.PROBLEM, "pyspark-client is not enough")
    assert_says(software.pyspark("3.5.1", whole=True), Level.PROBLEM, "4.2 or newer")
    assert_says(software.pyspark("4.4.0", whole=True), Level.WARNING, "known to work: 4.3.0", "without --quick")
    assert_says(software.pyspark("4.3.0", whole=True), Level.OK, "known")


def test_another_spark_than_pysparks_own_is_noticed(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    assert software.spark_home(None, own).level is Level.OK
    assert software.spark_home(str(own), own).level is Level.OK
    assert_says(software.spark_home(str(other), own), Level.PROBLEM, "no bin/spark-submit", "unset")
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "spark-submit").touch()
    assert_says(software.spark_home(str(other), own), Level.WARNING, "same version")


def test_workers_with_another_python_are_noticed(tmp_path: Path) -> None:
    own, link, other = tmp_path / "python", tmp_path / "python3", tmp_path / "other"
    own.touch()
    other.touch()
    link.symlink_to(own)
    assert software.worker_python(None, str(own)).level is Level.OK
    assert software.worker_python(str(link), str(own)).level is Level.OK, "the same by another name"
    assert_says(software.worker_python(str(other), str(own)), Level.WARNING, str(other), str(own), "set it to this Python")
    assert software.worker_python("python3.9", str(own)).level is Level.WARNING


def test_pandas_must_be_a_late_2() -> None:
    assert software.pandas("2.3.3").level is Level.OK
    assert_says(software.pandas("3.0.0"), Level.PROBLEM, "pandas<3")
    assert_says(software.pandas("2.1.4"), Level.PROBLEM, "too old")
    assert_says(software.pandas(None), Level.PROBLEM, "pip install")


def test_jax_may_be_missing() -> None:
    assert_says(software.jax(None), Level.OK, "springtide[neural]")
    assert_says(software.jax("0.10.2"), Level.OK, "0.10.2: neural forecasts can be trained")


def test_python_is_new_enough() -> None:
    assert software.python((3, 11, 0)).level is Level.OK
    assert software.python((3, 10, 14)).level is Level.PROBLEM
