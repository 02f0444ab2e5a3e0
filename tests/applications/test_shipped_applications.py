"""What every application that comes with Springtide has in common, without Spark; and the folder of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from springtide.applications import registry
from springtide.applications.answers import compared
from springtide.applications.micro_benchmark.application import MicroBenchmark
from springtide.applications.runs import RunFolder
from springtide.errors import SpringtideError


@pytest.fixture(params=registry.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_knows_its_name_and_where_it_comes_from(name: str) -> None:
    owner = registry.kind(name)

    assert owner.name == name
    assert owner.summary
    assert owner.reference


@pytest.mark.parametrize("with_data", [True, False])
def test_it_can_be_made_with_and_without_recordings(
    name: str, with_data: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_data:
        monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path / "nothing"))

    made = registry.kind(name).small()
    app = made.application(tmp_path / "run")
    app.check()

    assert made.data()
    assert "\n" not in made.data()
    assert app.name == name
    assert list(app.sources)


def test_its_options_are_refused_by_name(name: str) -> None:
    with pytest.raises(SpringtideError, match=rf"application '{name}' has no option 'colour'"):
        registry.make(name, {"colour": "red"})


def test_an_unknown_one_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpringtideError, match="did you mean 'taxi-routes'"):
        registry.kind("taxi-route")


def test_options_may_be_text() -> None:
    made = registry.make("micro-benchmark", {"keys": "50", "waits": "yes"})

    assert isinstance(made, MicroBenchmark)
    assert (made.keys, made.waits) == (50, True)


def test_a_run_that_was_cut_off_goes_on_with_the_same_options_only(tmp_path: Path) -> None:
    folder, small = RunFolder(tmp_path / "run"), MicroBenchmark.small()
    folder.begin(small)
    folder.begin(small)

    with pytest.raises(SpringtideError, match="was begun in it with other options"):
        folder.begin(dataclasses.replace(small, keys=7))


def test_a_run_that_has_ended_is_not_begun_again_but_can_be_removed(tmp_path: Path) -> None:
    folder, small = RunFolder(tmp_path / "run"), MicroBenchmark.small()
    folder.begin(small)
    folder.end()

    with pytest.raises(SpringtideError, match="has run in it to its end"):
        folder.begin(small)
    folder.remove()
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    folder = RunFolder(tmp_path)

    folder.remove()
    with pytest.raises(SpringtideError, match="is not a folder of micro-benchmark"):
        folder.begin(MicroBenchmark.small())
    assert (tmp_path / "thesis.txt").exists()


def test_a_damaged_note_of_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "about.json").write_text("{")

    with pytest.raises(SpringtideError, match=r"about\.json: it cannot be read"):
        RunFolder(tmp_path).begin(MicroBenchmark.small())


def test_rows_are_compared_as_often_as_they_are_there() -> None:
    right = [("a", 1), ("a", 1), ("b", 2)]

    assert compared("rows", right, [("b", 2), ("a", 1), ("a", 1)]).wrong == 0
    assert compared("rows", right, [("a", 1), ("b", 2)]).wrong == 1
    assert compared("rows", right, [*right, ("c", 3)]).first_wrong == "('c', 3) is too many"


def test_order_counts_where_it_is_said_to() -> None:
    right = [("a", 1), ("b", 2)]

    swapped = compared("rows", right, right[::-1], in_order=True)
    assert (swapped.rows, swapped.wrong) == (2, 2)
    assert swapped.first_wrong == "number 1 is ('b', 2) instead of ('a', 1)"
    assert compared("rows", right, right[:1], in_order=True).first_wrong == "number 2 is nothing instead of ('b', 2)"
