"""The examples are few and small. They are run, and their answers checked, by the pages that show them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from springtide.cli.loading import load_application

PROJECT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))


def test_there_are_three_and_each_is_on_the_index_and_short() -> None:
    assert len(EXAMPLES) == 3
    index = (PROJECT / "docs" / "README.md").read_text()
    for example in EXAMPLES:
        assert f"(../examples/{example.name})" in index, example.name
        assert len(example.read_text().splitlines()) < 100, example.name


@pytest.mark.parametrize("name", ["clicks", "orders"])
def test_an_application_has_two_operators_of_which_one_keeps_state(name: str) -> None:
    app = load_application(PROJECT / "examples" / f"{name}.py")
    assert app.name == name
    assert [operator.shards > 0 for operator in app.operators.values()] == [False, True]


def test_three_lines_make_a_job_elastic_and_it_was_one_before() -> None:
    text = (PROJECT / "examples" / "visits.py").read_text()
    changed = [line for line in text.splitlines() if re.search(r"  # (new$|was: )", line)]
    assert len(changed) == 3
    before = re.sub(r"^import springtide  # new\n", "", text, flags=re.MULTILINE)
    before = re.sub(r"^( *).*  # was: (.+)$", r"\1\2", before, flags=re.MULTILINE)
    assert "springtide" not in before.partition("import os")[2].replace("springtide-visits", "")
    compile(before, "visits.py", "exec")
