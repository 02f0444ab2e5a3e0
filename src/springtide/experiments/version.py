"""Which code a result was made with: the version, and a fingerprint of every source file of the package."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import springtide


@cache
def code_version() -> str:
    """Such as 0.1.0+5f3a9c1e: another fingerprint, other code."""
    root = Path(springtide.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{springtide.__version__}+{digest.hexdigest()[:8]}"
