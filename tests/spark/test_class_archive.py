"""The archive of classes that executors start from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from springtide.backends.spark.cluster.class_archive import ClassArchive

SESSION = """
from springtide.backends.spark.cluster.embedded import session
with session("archive", executors=1) as spark:
    options = spark.sparkContext.getConf().get("spark.executor.extraJavaOptions")
    print("uses" if "SharedArchiveFile" in options else "records", spark.range(100).selectExpr("sum(id)").collect()[0][0])
    print(spark.sparkContext.appName)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_an_archive_that_is_there_is_used(cache: Path) -> None:
    archive = ClassArchive()
    assert archive.path.is_relative_to(cache)
    assert "SharedArchiveFile" not in archive.executor_options()
    archive.path.parent.mkdir(parents=True)
    archive.path.touch()
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.executor_options()


def test_a_path_with_spaces_is_not_given_to_a_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two words"))
    assert ClassArchive().executor_options() == ""


def test_without_jcmd_nothing_is_recorded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert ClassArchive().executor_options() == ""


def test_another_java_has_another_archive(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ClassArchive().path
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert ClassArchive().path != first


@pytest.mark.slow
@pytest.mark.xdist_group("commands")
def test_it_is_written_before_the_first_session_and_every_session_starts_from_it(cache: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}

    def run() -> list[str]:
        ran = subprocess.run(
            [sys.executable, "-c", SESSION], env=environment, capture_output=True, text=True, timeout=180, check=True
        )
        return ran.stdout.split()

    assert ClassArchive().missing
    assert run() == ["uses", "4950", "archive"]
    assert not ClassArchive().missing
    assert ClassArchive().path.stat().st_size > 10_000_000
    assert [path.suffix for path in ClassArchive().path.parent.iterdir()] == [".jsa"]
    assert run() == ["uses", "4950", "archive"]
