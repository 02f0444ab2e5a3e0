"""What the pages in docs/results say of each claim, to be compared with a new run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from springtide.experiments.study import Claim

_RESULTS = Path(__file__).parent.parent.parent / "docs" / "results"


def published_claims(study: str) -> dict[str, bool]:
    """Whether each claim holds, as the page of a study says."""
    text = (_RESULTS / f"{study}.md").read_text()
    table = text.partition("| claim | paper | here | holds |\n|---|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [re.split(r"(?<!\\) ?\| ?", row.strip("| ")) for row in table.splitlines()]
    return {cells[0].removesuffix(" (ours)").replace("\\|", "|"): cells[3].startswith("yes") for cells in rows}


def assert_as_published(study: str, claims: Iterable[Claim]) -> None:
    """A new run of the quick variant finds what the page says, claim by claim; else the page must be made anew."""
    published = published_claims(study)
    found = {claim.says: claim.holds for claim in claims}
    assert found, "a study without claims"
    assert found == {says: published.get(says) for says in found}
