"""`springtide control`: what makes sense is asked for; everything else is refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import factories
from ran import Ran, assert_refused
from springtide.journal.controls import ControlsReader, controls_path
from springtide.journal.records import RunRecord
from springtide.journal.steered import SteeredJournal

RUN: RunRecord = factories.run(interval_s=5.0, live=True)


@pytest.fixture
def going_on(tmp_path: Path) -> Iterator[SteeredJournal]:
    """A run whose first interval is over; its journal is `run.jsonl` in the folder that commands are run in."""
    with SteeredJournal(tmp_path / "run.jsonl", RUN) as journal:
        journal.observation(factories.observation(allocation=factories.allocation(hosts=2)))
        yield journal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pause"], "pause"),
        (["resume"], "resume"),
        (["pin", "count", "4"], "pin count to 4 replicas"),
        (["pin", "count", "1"], "pin count to 1 replica"),
        (["unpin", "count"], "unpin count"),
        (["drain", "host-1"], "drain host-1"),
        (["undrain", "host-1"], "undrain host-1"),
    ],
)
def test_what_is_asked_for_reaches_the_run(
    springtide: Callable[..., Ran], going_on: SteeredJournal, tmp_path: Path, words: list[str], said: str
) -> None:
    reader = ControlsReader(tmp_path / "run.jsonl")
    ran = springtide("control", "run.jsonl", *words)

    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"Asked for: {said}. It takes effect at the end of the next interval (5 s)")
    (request,) = reader.new()
    assert str(request) == said
    assert request.who


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["puase"], "there is no control 'puase'; did you mean 'pause'?"),
        (["pin", "cuont", "4"], "has no operator 'cuont'; did you mean 'count'?"),
        (["pin", "count"], "write it as 'pin OPERATOR REPLICAS'"),
        (["pin", "count", "four"], "cannot be 'four'"),
        (["pin", "count", "40"], "count can have 1 to 8 replicas, not 40"),
        (["pause", "now"], "write it as 'pause'"),
        (["drain", "host-7"], "there is no host 'host-7'"),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_asked_for(
    springtide: Callable[..., Ran], going_on: SteeredJournal, tmp_path: Path, words: list[str], hint: str
) -> None:
    assert_refused(springtide("control", "run.jsonl", *words), hint)
    assert not controls_path(tmp_path / "run.jsonl").exists()


def test_a_run_that_has_just_begun_can_be_paused(springtide: Callable[..., Ran], tmp_path: Path) -> None:
    with SteeredJournal(tmp_path / "run.jsonl", RUN):
        assert springtide("control", "run.jsonl", "pause").code == 0


def test_a_run_that_is_not_going_on_is_refused(springtide: Callable[..., Ran], tmp_path: Path) -> None:
    assert_refused(springtide("control", "nowhere.jsonl", "pause"), "there is no journal nowhere.jsonl")

    with SteeredJournal(tmp_path / "killed.jsonl", RUN) as journal:
        journal.observation(factories.observation())
    assert_refused(springtide("control", "killed.jsonl", "pause"), "a run that was killed")

    with SteeredJournal(tmp_path / "ended.jsonl", RUN) as journal:
        journal.end(60.0, {})
        assert_refused(springtide("control", "ended.jsonl", "pause"), "a run that has ended")

    with SteeredJournal(tmp_path / "simulated.jsonl", factories.run()):
        assert_refused(springtide("control", "simulated.jsonl", "pause"), "a simulated run")
