"""What the pages of `docs/` tell a user to type works, in the order they tell it, from an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import typer.main
from _pytest.mark import ParameterSet
from pages import Block, agrees, blocks, springtide_commands

from springtide.cli.main import app

PROJECT = Path(__file__).parent.parent.parent
DOCS = PROJECT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "results"]
NAMES = {page: str(page.relative_to(DOCS)) for page in PAGES}
_END = "\x1e"  # nothing prints this
# Live commands replay a shorter stream here than a reader sees.
SHORTER = {
    "CLICKS_TRACE": "generator:steps:levels=50/200,hold_s=5",
    "ORDERS_TRACE": "generator:steps:levels=50/100,hold_s=5",
}


LIVE = pytest.mark.xdist_group("commands")


def pages_with(*, slow: bool) -> list[ParameterSet]:
    """Pages with something to run. Those with slow parts are run whole by `make test-all`, those that start Spark are slow."""
    found = []
    for page in PAGES:
        runnable = [block for block in blocks(page) if block.runs and not block.excerpt]
        if any(block.slow for block in runnable) if slow else any(not block.slow for block in runnable):
            spark = any("pyspark" in block.text and block.file is not None for block in runnable)
            tier = [pytest.mark.full] if slow else [pytest.mark.slow] if spark else []
            found.append(pytest.param(page, id=NAMES[page], marks=[*tier, pytest.mark.spark, LIVE] if tier else []))
    return found


@pytest.fixture(scope="session")
def compiled() -> None:
    """The first simulation of all compiles, and says so, which no page shows."""
    command = [sys.executable, "-m", "springtide", "simulate", "generator:constant:duration_s=60"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


@pytest.fixture
def folder(tmp_path: Path, compiled: None) -> Path:
    """A user's folder, in which the project's examples can be reached, and its commands on the path."""
    place = tmp_path / "user"
    place.mkdir()
    for name in ("examples", "docs"):
        (place / name).symlink_to(PROJECT / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("python", ""), ("springtide", "-m springtide")):
        here = f'PYTHONPATH="{PROJECT / "src"}:$PYTHONPATH" exec "{sys.executable}"'  # this project, whatever is installed
        (programs / name).write_text(f'#!/bin/sh\n{here} {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    return place


def bash(script: str, folder: Path) -> str:
    """What a script says on both streams. Whatever it has started ends with it."""
    path = os.pathsep.join([str(folder.parent / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        **SHORTER,
        "PATH": path,
        "COLUMNS": "80",
        "PYSPARK_PYTHON": str(folder.parent / "bin" / "python"),
    }
    process = subprocess.Popen(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=600)[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def run_console(block: Block, folder: Path, page: str) -> None:
    """All commands of a block in one shell, so that variables and processes in the background are kept."""
    typed = block.commands()
    script = "".join(f'{command.typed}\necho "{_END}$?{_END}"\n' for command in typed)
    said = bash(script, folder).split(_END)
    for command, heard, code in zip(typed, said[::2], said[1::2], strict=False):
        output = heard.removeprefix("\n")
        where = f"{page}:{block.line}: {command.typed}\n{output}"
        assert (code != "0") == command.refused, f"exit code {code}: {where}"
        if command.output is not None:
            assert agrees(output, command.output), f"other output: {where}"
    assert len(said) == 2 * len(typed) + 1, f"{page}:{block.line}: it ended early: {said[-1]}"


def run_page(page: Path, folder: Path, *, slow: bool) -> None:
    if "$ jq " in page.read_text() and shutil.which("jq") is None:
        pytest.skip("the page reads JSON with jq, which is not installed")
    for block in blocks(page):
        if not block.runs or block.excerpt or (block.slow and not slow):
            continue
        if block.language == "console":
            run_console(block, folder, NAMES[page])
        elif block.file is not None:
            (folder / block.file).write_text(block.text)
        elif block.language == "python":
            (folder / "snippet.py").write_text(block.text)
            said = bash(f'python snippet.py; echo "{_END}$?"', folder)
            assert said.endswith(f"{_END}0\n"), f"{NAMES[page]}:{block.line}: {said}"


@pytest.mark.parametrize("page", pages_with(slow=False))
def test_what_a_page_says_comes_true(page: Path, folder: Path) -> None:
    run_page(page, folder, slow=False)


@pytest.mark.parametrize("page", pages_with(slow=True))
def test_what_a_page_says_of_live_spark_comes_true(page: Path, folder: Path) -> None:
    run_page(page, folder, slow=True)


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_every_command_of_a_page_is_one_that_springtide_understands(page: Path) -> None:
    """Also those that cannot be run here, or take too long: names and options exist, and no argument is missing."""
    typed = [command.typed for block in blocks(page) if block.language == "console" for command in block.commands()]
    for arguments in (found for line in typed for found in springtide_commands(line)):
        assert understood(arguments), f"{NAMES[page]}: springtide {' '.join(arguments)}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_every_command_of_a_page_stands_in_a_block_that_is_run_or_says_why_not(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^    (?:\$ |springtide |make ).*$", text, flags=re.MULTILINE) == []


def understood(arguments: list[str]) -> bool:
    """Parse a command line as the command would, without running it."""
    group, name, rest = typer.main.get_command(app), "springtide", arguments
    while hasattr(group, "resolve_command") and rest:
        context = group.make_context(name, list(rest), resilient_parsing=True)
        name, command, rest = group.resolve_command(context, list(rest))
        if command is None:
            return False
        group = command
    if "--help" in rest:
        return True
    try:
        group.make_context(name, list(rest))
    except typer.TyperException:
        return False
    return True


def test_a_command_that_does_not_exist_or_has_other_options_is_not_understood() -> None:
    assert understood(["simulate", "generator:constant", "--policy", "tide"])
    assert understood(["bench", "spark", "--quick"])
    assert not understood(["simulate", "generator:constant", "--polcy", "tide"])
    assert not understood(["simulat", "generator:constant"])
    assert not understood(["bench", "sparks"])
    assert not understood(["explain"]), "an argument is missing"


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_a_block_that_is_not_run_says_why_and_an_excerpt_is_one(page: Path) -> None:
    sources = [path.read_text() for place in ("src", "docs/examples", "examples") for path in (PROJECT / place).rglob("*.py")]
    for block in blocks(page):
        where = f"{NAMES[page]}:{block.line}"
        assert block.mark in ("", "slow") or re.fullmatch(r"not-run: .+", block.mark), f"{where}: {block.mark}"
        if block.language == "python" and not block.runs:
            compile(block.text, where, "exec")
        if block.language == "python" and block.excerpt:
            assert any(block.text in source for source in sources), f"{where}: in no file of the project"


def test_pages_that_run_nothing_are_not_forgotten() -> None:
    assert len(pages_with(slow=False)) >= 5
    assert len(pages_with(slow=True)) >= 1


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_every_page_that_is_linked_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), f"{NAMES[page]} links to {target}"
