"""How a page of the documentation is read: which of it is commands, files and programs, and what must come of them.

* `console`: lines that begin with `$ ` are commands for bash, all others are what must come out, on either stream. A line `...`
  stands for any lines, and `...` within a line for any text. A command whose output is left out may say anything. A command
  must succeed, unless what it must say ends with a refusal (`springtide: ...`).
* `python` and other languages: a file, if the first line is a comment with its name; else a program, which is run. One that
  begins with a blank is an excerpt, and stands in one of the project's files, word by word.
* `slow` behind the language: run by `make test-all` only. `not-run: why`: it cannot be run here; then the command lines must
  still be ones that Springtide understands, and the programs must be Python.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.\w+)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is typed, and what must come of it; None if nothing is said of that."""

    typed: str
    output: str | None

    @property
    def refused(self) -> bool:
        return self.output is not None and self.output.splitlines()[-1].startswith("springtide: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced part of a page."""

    line: int
    language: str
    mark: str
    text: str

    @property
    def slow(self) -> bool:
        return self.mark == "slow"

    @property
    def runs(self) -> bool:
        return not self.mark.startswith("not-run")

    @property
    def file(self) -> str | None:
        found = _FILE.match(self.text)
        return found.group(1) if found else None

    @property
    def excerpt(self) -> bool:
        return self.text.startswith(" ")

    def commands(self) -> list[Command]:
        return commands(self.text)


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            line=text[: found.start()].count("\n") + 1,
            language=found.group(1),
            mark=found.group(2).strip(),
            text=found.group(3),
        )
        for found in _FENCE.finditer(text)
    ]


def commands(text: str) -> list[Command]:
    r"""
    >>> commands("$ echo a \\\n  b\na b\n$ cat <<'EOF'\n1\nEOF\n$ printf '1\n2'\n")[0]
    Command(typed='echo a \\\n  b', output='a b')
    >>> [c.typed for c in commands("$ cat <<'EOF'\n1\nEOF\n$ printf '1\n2'\n")]
    ["cat <<'EOF'\n1\nEOF", "printf '1\n2'"]
    """
    found: list[Command] = []
    lines = text.splitlines()
    while lines:
        typed = lines.pop(0).removeprefix("$ ")
        while lines and _goes_on(typed):
            typed += "\n" + lines.pop(0)
        output: list[str] = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        found.append(Command(typed=typed, output="\n".join(output) if output else None))
    return found


def _goes_on(typed: str) -> bool:
    here = re.search(r"<<'?(\w+)'?", typed)
    if here:
        return not typed.endswith("\n" + here.group(1))
    if typed.endswith("\\"):
        return True
    try:
        shlex.split(typed)
    except ValueError:
        return True
    return False


def agrees(output: str, expected: str) -> bool:
    """
    >>> agrees("1\\n2\\n3 s\\n", "1\\n...\\n... s"), agrees("1\\n2\\n3\\n", "1\\n3")
    (True, False)
    """
    pattern = ""
    for line in expected.splitlines():
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace(r"\.\.\.", r"[^\n]*") + r"[ ]*\n"
    return re.fullmatch(pattern, output.rstrip("\n") + "\n") is not None


def springtide_commands(typed: str) -> list[list[str]]:
    """The arguments of each `springtide` in a command line; an ellipsis stands for what a reader would put there."""
    joined = re.sub(r"\$\([^)]*\)", "said", typed.replace("\\\n", " "))
    found = re.findall(r"(?:^|[|;&(=] *|\bdo )(?:\w+=\S+ )*springtide ([^|;&\n]*)", joined, flags=re.MULTILINE)
    return [
        shlex.split(re.sub(r"\d?>.*", "", arguments), comments=True) for arguments in found if " ..." not in f" {arguments}"
    ]
