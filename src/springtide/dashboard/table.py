"""Rows of numbers that grow at the end: a column of a week of intervals is a slice, not a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_FIRST_ROWS = 1024

Scalar = TypeVar("Scalar", np.float64, np.int64)


class Table(Generic[Scalar]):
    """Columns by name, all of one type.

    >>> table = Table(("time_s", "rows"), np.float64)
    >>> table.append((60.0, 5.0)); table.append((120.0, 7.0))
    >>> table["rows"].tolist(), len(table)
    ([5.0, 7.0], 2)
    """

    def __init__(self, names: Sequence[str], dtype: type[Scalar]) -> None:
        self.names = tuple(names)
        self._at = {name: i for i, name in enumerate(self.names)}
        self._cells: NDArray[Any] = np.empty((_FIRST_ROWS, len(self.names)), dtype=dtype)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> NDArray[Scalar]:
        return self._cells[: self._rows, self._at[name]]

    def append(self, row: Sequence[float]) -> None:
        if self._rows == len(self._cells):
            self._cells = np.concatenate([self._cells, np.empty_like(self._cells)])
        self._cells[self._rows] = row
        self._rows += 1
