"""The kernel is compiled once for a source, and who starts a run is told when that has to be done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from springtide.backends.simulator import compiling
from springtide.simulation import compile_simulator


def test_what_was_compiled_is_known_also_when_the_files_have_been_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_simulator()
    assert compiling.is_compiled()
    os.utime(compiling.__file__)  # as installing the same version again does
    assert compiling.is_compiled()
    monkeypatch.setattr(compiling, "_FOLDER", str(tmp_path))
    assert not compiling.is_compiled()
