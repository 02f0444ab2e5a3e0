"""What a paper's evaluation is made of, and what comes of running it again.

Study        a paper: its experiments, and what was rebuilt how
Experiment   a table or figure, or several of one setting: its runs, what a run finds, and what the page says of it
Run          the parameters and the seed of one run
Finding      a run with what came out
Section      a part of the page: tables, pictures, and claims with the paper's figures beside ours
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from springtide.errors import require

Values = Mapping[str, Any]  # what JSON can say: text, numbers, lists and mappings of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, made of what JSON can say, so that it can be sent anywhere and kept beside what it found."""

    paper: str
    experiment: str
    parameters: Values
    seed: int = 0

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.paper} {self.experiment}: {named}" + (f", seed {self.seed}" if self.seed else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of a run. `found` is the same in every rerun; `measured` is time on a clock, which is not."""

    run: Run
    found: Values
    measured: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that did not come to its end."""

    run: Run
    error: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.run} failed: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a paper says, whether it holds here, and if it does not, why.

    `paper` and `here` are the figures that stand behind it, with their units. `ours` marks a claim that is Springtide's own.
    """

    says: str
    paper: str
    here: str
    holds: bool
    why: str = ""
    ours: bool = False

    def __post_init__(self) -> None:
        require(self.holds or bool(self.why), f"the claim {self.says!r} does not hold, and nothing says why")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table of a page: every cell is text already, with its unit in the cell or in the column's name."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            require(
                len(row) == len(self.columns), f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of a page. `name` makes its file's name; `draw` writes a PNG to the path it is given."""

    name: str
    shows: str
    draw: Callable[[Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a page says of one or more tables and figures of a paper. `text` is Markdown: the setting, what differs and why."""

    title: str
    text: str
    tables: tuple[PageTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """`runs(quick)` names every run; `run` does one, from its parameters and seed alone; `sections` tells what they found.

    `run` must be a function of a module, not one made inside another: it may be called in another process.
    """

    name: str
    runs: Callable[[bool], Sequence[tuple[Values, int]]]
    run: Callable[[Values, int], Values | tuple[Values, Values]]
    sections: Callable[[Sequence[Finding]], Sequence[Section]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A paper. `introduction` is Markdown: what the paper evaluated, on what, and with what it was rebuilt here.

    A study with `surroundings` is of live runs: they take turns inside that block, in this process, and none is a task of a
    Spark job, as each needs all of the machine. What they measure is not the same in a rerun.
    """

    name: str
    title: str
    reference: str
    introduction: str
    experiments: tuple[Experiment, ...]
    surroundings: Callable[[], AbstractContextManager[None]] | None = None

    @property
    def live(self) -> bool:
        return self.surroundings is not None

    def experiment(self, name: str) -> Experiment:
        return next(one for one in self.experiments if one.name == name)

    def runs(self, *, quick: bool) -> list[Run]:
        return [
            Run(paper=self.name, experiment=one.name, parameters=parameters, seed=seed)
            for one in self.experiments
            for parameters, seed in one.runs(quick)
        ]

    def sections(self, findings: Sequence[Finding]) -> list[Section]:
        return [
            section
            for one in self.experiments
            for section in one.sections([finding for finding in findings if finding.run.experiment == one.name])
        ]

    def without(self, failures: Sequence[Failure]) -> Study:
        """The same study, in which an experiment with a run that failed says so, and nothing else."""
        failed = {failure.run.experiment: failure for failure in failures if failure.run.paper == self.name}
        experiments = tuple(_failed(one, failed[one.name]) if one.name in failed else one for one in self.experiments)
        return replace(self, experiments=experiments)


def _failed(experiment: Experiment, failure: Failure) -> Experiment:
    section = Section(
        title=f"{experiment.name}: a run has failed",
        text=f"Nothing is said of this experiment, because one of its runs has failed:\n\n    {failure}",
    )
    return replace(experiment, sections=lambda _: [section])
