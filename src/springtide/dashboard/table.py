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
        self._new: list[Sequence[float]] = []  # put in its place when somebody looks: many rows at once cost a third

    def __len__(self) -> int:
        return self._rows + len(self._new)

    def __getitem__(self, name: str) -> NDArray[Scalar]:
        if self._new:
            self._settle()
        return self._cells[: self._rows, self._at[name]]

    def append(self, row: Sequence[float]) -> None:
        self._new.append(row)

    def _settle(self) -> None:
        rows = self._rows + len(self._new)
        if rows > len(self._cells):
            larger = np.empty((max(rows, 2 * len(self._cells)), len(self.names)), dtype=self._cells.dtype)
            larger[: self._rows] = self._cells[: self._rows]
            self._cells = larger
        self._cells[self._rows : rows] = self._new
        self._rows = rows
        self._new.clear()
