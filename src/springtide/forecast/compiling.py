"""How the models' inner loops are compiled: when they are first called, and kept for the next run.

Rule: a compiled function calls none of another file, because Numba notices changes of a file in that file's functions only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    done: Callable[..., Any] = numba.njit(cache=True, error_model="numpy")(function)
    return done
