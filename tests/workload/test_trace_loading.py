"""What a user may write in place of a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from springtide.errors import InvalidValue
from springtide.workload.loading import load


def test_a_generator() -> None:
    assert load("generator:constant:rate_per_s=2,duration_s=5", seed=0).rows == 10.0


def test_the_seed_reaches_the_generator() -> None:
    assert load("generator:day-cycle", seed=1).rows != load("generator:day-cycle", seed=2).rows


def test_a_file_and_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("when,hits,speed\n0,1,3\n2,2,3\n")
    assert load(str(path), seed=0, time_column="when", count_column="hits").rows == 3.0
    assert load(str(path), seed=0, time_column="when", rate_column="speed").rows == 12.0


def test_a_generator_without_its_prefix_is_recognised() -> None:
    with pytest.raises(InvalidValue, match=r"no such file; .* write generator:steps:hold_s=5"):
        load("steps:hold_s=5", seed=0)


def test_a_generator_does_not_import_arrow() -> None:
    program = """
import sys
from springtide.workload.loading import load
load("generator:steps", seed=0)
sys.exit("pyarrow" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
