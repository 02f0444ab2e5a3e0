"""`springtide reproduce`: what is run, what is written, and what is said of claims that do not hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from ran import Ran, assert_refused
from springtide.errors import InvalidValue
from springtide.experiments import registry
from springtide.experiments.drawing import Bars, Line, Lines, draw
from springtide.experiments.pages import lines, markdown, page, write
from springtide.experiments.running import attempt
from springtide.experiments.study import (
    Claim,
    Experiment,
    Failure,
    Finding,
    PageTable,
    Picture,
    Run,
    Section,
    Study,
    Values,
)
from springtide.experiments.version import code_version
from springtide.sweeping.in_turn import run_in_turn

Springtide = Callable[..., Ran]


def runs(quick: bool) -> list[tuple[Values, int]]:
    return [({"hosts": hosts}, seed) for hosts in ((1, 2) if quick else (1, 2, 4)) for seed in (0, 7)]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    if parameters["hosts"] > 2:
        raise ZeroDivisionError("too many\nhosts")
    return {"rows": 100 * parameters["hosts"] + seed}, {"wall_s": 0.25}


def picture(findings: Sequence[Finding]) -> Callable[[Path], None]:
    hosts, rows = ([f.run.parameters["hosts"] for f in findings], [f.found["rows"] for f in findings])
    panels = [
        Lines(title="rows", x_label="hosts", y_label="rows", lines=[Line(name="ours", x=hosts, y=rows)]),
        Bars(title="rows", y_label="rows", groups=list(map(str, hosts)), series=[("ours", rows), ("ours (paper)", rows)]),
    ]
    return lambda path: draw(panels, path)


def sections(findings: Sequence[Finding]) -> list[Section]:
    most = max(finding.found["rows"] for finding in findings)
    return [
        Section(
            title="Table 1: rows by hosts",
            text="Rows | hosts.",
            tables=(PageTable(columns=("hosts", "rows"), rows=(("2", str(most)),), caption="ours"),),
            pictures=(Picture(name="table-1", shows="rows by hosts", draw=picture(findings)),),
            claims=(
                Claim(says="more hosts, more rows", paper="2 x", here=f"{most} rows", holds=most > 200),
                Claim(says="a thousand rows", paper="1,000", here=str(most), holds=most >= 1000, why="two hosts are few"),
            ),
        )
    ]


MADE_UP = Study(
    name="made-up",
    title="A made-up paper",
    reference="Nobody, 2024",
    introduction="What was rebuilt.",
    experiments=(Experiment(name="table-1", runs=runs, run=run, sections=sections),),
)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Study:
    module = ModuleType("springtide.experiments.made-up")
    module.STUDY = MADE_UP  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "PAPERS", ("made-up",))
    return MADE_UP


def found(study: Study) -> list[Finding]:
    outcomes = run_in_turn(study.runs(quick=True), attempt, lambda _: None)
    return [outcome for outcome in outcomes if isinstance(outcome, Finding)]


def test_a_study_becomes_a_page_results_and_pictures(made_up: Study, tmp_path: Path) -> None:
    written = write(made_up, found(made_up), tmp_path / "results", version="1+x", quick=True)

    text = written.page.read_text()
    assert text.index("## What holds") < text.index("## Table 1: rows by hosts")
    assert "| more hosts, more rows | 2 x | 207 rows | yes |" in text
    assert "| a thousand rows | 1,000 | 207 | **no**: two hosts are few |" in text
    assert "![rows by hosts](made-up-table-1.png)" in text
    assert "quick variant" in text
    assert (tmp_path / "results" / "made-up-table-1.png").stat().st_size > 5_000
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "made-up-table-1.png", "made-up.jsonl", "made-up.md",
    ]  # fmt: skip


def test_every_result_carries_what_it_was_made_from(made_up: Study) -> None:
    first = json.loads(lines(found(made_up), "1+x").splitlines()[1])

    assert first == {
        "paper": "made-up", "experiment": "table-1", "parameters": {"hosts": 1}, "seed": 7, "version": "1+x",
        "found": {"rows": 107}, "measured": {"wall_s": 0.25},
    }  # fmt: skip


def test_a_picture_that_cannot_be_drawn_leaves_nothing_behind(made_up: Study, tmp_path: Path) -> None:
    def broken(_: Path) -> None:
        raise RuntimeError("no ink")

    def with_broken(findings: Sequence[Finding]) -> list[Section]:
        return [Section(title="t", text="", pictures=(Picture(name="p", shows="p", draw=broken),))]

    experiment = Experiment(name="table-1", runs=runs, run=run, sections=with_broken)
    study = Study(name="made-up", title="t", reference="r", introduction="i", experiments=(experiment,))
    with pytest.raises(RuntimeError):
        write(study, found(made_up), tmp_path, version="1", quick=False)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_raises_spoils_only_itself(made_up: Study) -> None:
    outcomes = run_in_turn(made_up.runs(quick=False), attempt, lambda _: None)

    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert [str(failure) for failure in failures] == [
        "made-up table-1: hosts=4 failed: ZeroDivisionError: too many hosts",
        "made-up table-1: hosts=4, seed 7 failed: ZeroDivisionError: too many hosts",
    ]
    assert len(outcomes) == 6


def test_a_claim_that_does_not_hold_says_why() -> None:
    with pytest.raises(InvalidValue, match="nothing says why"):
        Claim(says="faster", paper="2 x", here="1 x", holds=False)


def test_cells_do_not_break_tables() -> None:
    assert markdown(PageTable(columns=("a", "b"), rows=(("x|y", "two\nlines"),))).splitlines()[-1] == "| x\\|y | two lines |"
    with pytest.raises(InvalidValue, match="1 cells in a table of 2 columns"):
        PageTable(columns=("a", "b"), rows=(("x",),))


def test_a_page_without_claims_has_no_list_of_them() -> None:
    assert "What holds" not in page(MADE_UP, [Section(title="t", text="x")], version="1", quick=False)


def test_the_command_writes_and_tells(made_up: Study, springtide: Springtide, tmp_path: Path) -> None:
    ran = springtide("reproduce", "all", "--quick", "--no-spark", "--json")

    assert ran.code == 0, ran.err
    told = json.loads(ran.out)["made-up"]
    assert told["page"] == "docs/results/made-up.md"
    assert [claim["holds"] for claim in told["claims"]] == [True, False]
    assert "4 of 4 done" in ran.err
    results = (tmp_path / told["results"]).read_text().splitlines()
    assert {json.loads(line)["version"] for line in results} == {code_version()}

    shown = springtide("reproduce", "made-up", "--quick", "--no-spark", "--out", "again")
    assert "NO: two hosts are few" in " ".join(shown.out.split())
    assert (tmp_path / "again" / "made-up.jsonl").read_text().splitlines() == results


def test_a_failed_run_writes_no_page(made_up: Study, springtide: Springtide, tmp_path: Path) -> None:
    ran = springtide("reproduce", "made-up", "--no-spark")

    assert ran.code == 1
    assert "hosts=4 failed: ZeroDivisionError" in ran.err
    assert list(tmp_path.rglob("*.md")) == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("heinz",), "did you mean 'heinze'"),
        (("edf", "--workers", "0"), "--workers must be at least 1"),
        (("edf", "--out", "file"), "--out file: this is not a folder"),
    ],
)
def test_mistakes_are_one_line(springtide: Springtide, tmp_path: Path, arguments: tuple[str, ...], hint: str) -> None:
    (tmp_path / "file").touch()
    assert_refused(springtide("reproduce", *arguments), hint)


def test_the_version_is_that_of_the_code() -> None:
    assert code_version() == code_version.__wrapped__()
    assert len(code_version().partition("+")[2]) == 8


def test_a_run_names_itself() -> None:
    assert str(Run(paper="edf", experiment="figure-4", parameters={"beta": 0.5})) == "edf figure-4: beta=0.5"
