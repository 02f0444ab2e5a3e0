"""A study's page: Markdown with its tables, pictures beside it, and every finding as a line of JSON.

Rules: the page leads with what holds and what does not. All files of a study appear together, or none does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from springtide.errors import SpringtideError
from springtide.experiments.study import Claim, Finding, PageTable, Picture, Section, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where a study's files are, and what it claims."""

    page: Path
    results: Path
    pictures: tuple[Path, ...]
    claims: tuple[Claim, ...]


def write(study: Study, findings: Sequence[Finding], folder: Path, *, version: str, quick: bool) -> Written:
    """The study's page, results and pictures in `folder`, which is made if it is not there."""
    sections = study.sections(findings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{study.name}-") as place:
            staged = Path(place)
            names = [_picture(study, picture) for section in sections for picture in section.pictures]
            for section in sections:
                for picture in section.pictures:
                    picture.draw(staged / _picture(study, picture))
            results = f"{study.name}.jsonl"
            (staged / results).write_bytes(lines(findings, version))
            (staged / f"{study.name}.md").write_text(page(study, sections, version=version, quick=quick), encoding="utf-8")
            for name in (*names, results, f"{study.name}.md"):
                shutil.move(staged / name, folder / name)
    except OSError as error:
        raise SpringtideError(f"{folder}: cannot be written: {error.strerror}") from error
    return Written(
        page=folder / f"{study.name}.md",
        results=folder / results,
        pictures=tuple(folder / name for name in names),
        claims=tuple(claim for section in sections for claim in section.claims),
    )


def lines(findings: Sequence[Finding], version: str) -> bytes:
    """Every finding as a line of JSON, with what it was made from."""
    encoder = msgspec.json.Encoder()
    return b"".join(
        encoder.encode(
            {
                "paper": finding.run.paper,
                "experiment": finding.run.experiment,
                "parameters": finding.run.parameters,
                "seed": finding.run.seed,
                "version": version,
                "found": finding.found,
                **({"measured": finding.measured} if finding.measured else {}),
            }
        )
        + b"\n"
        for finding in findings
    )


def page(study: Study, sections: Sequence[Section], *, version: str, quick: bool) -> str:
    command = f"springtide reproduce {study.name}" + (" --quick" if quick else "")
    parts = [
        f"# {study.title}",
        f"{study.reference}",
        f"Made with `{command}` by Springtide {version}; every run is a line of [{study.name}.jsonl]({study.name}.jsonl)."
        + (" This is the quick variant: fewer and shorter runs." if quick else ""),
        study.introduction.strip(),
    ]
    claims = [claim for section in sections for claim in section.claims]
    if claims:
        parts += ["## What holds", _claims(claims)]
    for section in sections:
        parts += [f"## {section.title}", section.text.strip()]
        for table in section.tables:
            parts.append(markdown(table))
        parts += [f"![{picture.shows}]({_picture(study, picture)})" for picture in section.pictures]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(table: PageTable) -> str:
    """
    >>> print(markdown(PageTable(columns=("policy", "hosts"), rows=(("tide", "3.1"), ("a | b", "4")))))
    | policy | hosts |
    |---|---|
    | tide | 3.1 |
    | a \\| b | 4 |
    """
    rule = "|" + "---|" * len(table.columns)
    head, *rows = ("| " + " | ".join(map(_cell, row)) + " |" for row in (table.columns, *table.rows))
    return "\n".join([*([f"*{table.caption}*", ""] if table.caption else []), head, rule, *rows])


def _claims(claims: Sequence[Claim]) -> str:
    rows = tuple(
        (
            f"{claim.says}" + (" (ours)" if claim.ours else ""),
            claim.paper,
            claim.here,
            "yes" if claim.holds else f"**no**: {claim.why}",
        )
        for claim in claims
    )
    return markdown(PageTable(columns=("claim", "paper", "here", "holds"), rows=rows))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _picture(study: Study, picture: Picture) -> str:
    return f"{study.name}-{picture.name}.png"
