"""How the kernel is compiled: once per version of its source, and kept for the next run.

Numba keeps compiled code per file and notices changes per file, but the kernel's functions inline one another across
files. So the code is kept in a folder named after the content of all of them: a change anywhere starts a new folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numba
import numba.core.config

from springtide.monitor import latency_histogram


def _sources() -> list[Path]:
    return [*sorted(Path(__file__).parent.glob("*.py")), Path(latency_histogram.__file__)]


def _cache_folder() -> Path:
    # The place counts too: older Numbas also compare the files' times, so two copies of the same source would take turns
    # in throwing away each other's code.
    digest = hashlib.sha256(f"{numba.__version__} {Path(__file__).parent}".encode())
    for source in _sources():
        digest.update(source.read_bytes())
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "springtide" / f"kernel-{digest.hexdigest()[:16]}"


# Numba's settings are attributes made at run time, which type checkers cannot see.
_SETTINGS: Any = numba.core.config
_FOLDER = str(_cache_folder())


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called, or load it from an earlier run."""
    return _compiled(function, inline="never")


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function called once per operator and step: written into its caller, as calls cost more than they do."""
    return _compiled(function, inline="always")


def _compiled(function: Callable[..., Any], inline: Literal["never", "always"]) -> Callable[..., Any]:
    before = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = _FOLDER
    try:
        done: Callable[..., Any] = numba.njit(cache=True, error_model="numpy", inline=inline)(function)
        return done
    finally:
        _SETTINGS.CACHE_DIR = before


def is_compiled() -> bool:
    """Whether an earlier run has left compiled code of this very source: of its entry, which is compiled last."""
    return any(Path(_FOLDER).glob("**/kernel.run_steps-*.nbc"))
