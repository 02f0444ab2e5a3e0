"""What all tests share: one Spark session per process, how a command is run, and the same examples in every property test."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from ran import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# No deadline: a busy machine is no defect. `same` has the same examples in every run; `explore` looks for new ones, and prints
# the line (`@reproduce_failure`) that brings a failure back.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the tests out if several processes run them: what is in one group, one process runs.

    `spark` shares a session, `commands` runs whole live commands one after the other, and a file shares its fixtures. The first
    two take longest and so begin first.
    """
    groups = {item: _group(item) for item in items}
    items.sort(key=lambda item: _FIRST.index(groups[item]) if groups[item] in _FIRST else len(_FIRST))
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))


_FIRST = ("spark", "commands")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Several processes with a session each would take turns with the cores: stop if groups are not kept together."""
    if getattr(session.config.option, "loadgroup", False) and any("@" not in item.nodeid for item in session.items):
        pytest.exit("this pytest and this pytest-xdist do not keep groups of tests together: see pyproject.toml", returncode=2)


def _group(item: pytest.Item) -> str:
    chosen = item.get_closest_marker("xdist_group")
    if chosen is not None:
        return str(chosen.args[0])
    return "spark" if item.get_closest_marker("spark") else item.location[0]


EXECUTORS = 4


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Real executors on this machine, quiet, and gone with the tests. Mark the tests that use it `@pytest.mark.spark`.

    A test may take executors away and ask for others; one that runs an application begins by asking for those it needs.
    """
    from springtide.backends.spark.cluster.embedded import session  # noqa: PLC0415 - a second that other tests need not wait

    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.streaming.checkpointLocation": str(scratch / "checkpoints"),
        "spark.sql.shuffle.partitions": "2",
    }
    with session("springtide-tests", executors=EXECUTORS, settings=settings) as spark:
        yield spark


@pytest.fixture
def springtide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Ran]:
    """Run a command in this process, in an empty folder."""
    from springtide.cli.main import run  # noqa: PLC0415 - commands are not what most tests wait for

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["springtide", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            run()
        printed = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), printed.out, printed.err)

    return command
