"""How tests run a command."""

import sys
from pathlib import Path

import pytest
from ran import Ran

from springtide.cli.main import run


@pytest.fixture
def springtide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["springtide", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            run()
        printed = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), printed.out, printed.err)

    return command
