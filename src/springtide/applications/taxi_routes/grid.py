"""The grand challenge's grid: 300 x 300 cells of 500 m, the first of which has its centre at 41.474937 N, 74.913585 W."""

from __future__ import annotations

CELLS = 300
CELL_SOUTH_DEGREES = 0.004491556
CELL_EAST_DEGREES = 0.005986
NORTH_DEGREES = 41.474937 + CELL_SOUTH_DEGREES / 2  # the edges of cell 1.1
WEST_DEGREES = -74.913585 - CELL_EAST_DEGREES / 2
