"""Programs that tests use and Python does not bring: those of this machine, or Debian's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest


def program(package: str, names: Sequence[str] = ()) -> str:
    """Where the program is; its package is installed if that is allowed. Without it the tests that need it are skipped."""
    found = _found(names or (package,))
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, capture_output=True, check=False, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        found = _found(names or (package,))
    if found is None:
        pytest.skip(f"this is tested with {package}, which is not here: apt-get install {package}")
    return found


def _found(names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)
