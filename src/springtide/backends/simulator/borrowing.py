"""Arrays lent to compiled code by their address alone.

Compiled code counts references to every array it is given, at each of its function calls; with seventeen arrays and a
dozen small functions per operator and step that costs more than the simulation. Arrays that are borrowed are not
counted. The lender, `Engine`, keeps them alive for as long as a call lasts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from springtide.backends.simulator import arrays
from springtide.backends.simulator.arrays import Ints, Simulation
from springtide.backends.simulator.compiling import inlined

OPERATOR, EDGE, LANE, REPLICA, HOST = arrays.OPERATOR, arrays.EDGE, arrays.LANE, arrays.REPLICA, arrays.HOST
RECORD, ENTRY, SLOT, TOTALS, WORLD = arrays.RECORD, arrays.ENTRY, arrays.SLOT, arrays.TOTALS, arrays.WORLD
BATCHES = arrays.BATCHES
FLOAT = np.dtype(np.float64)


def places_of(sim: Simulation) -> Ints:
    """Where each array lies: its address and its two lengths."""
    return np.array([[a.ctypes.data, a.shape[0], a.shape[1] if a.ndim > 1 else 1] for a in sim], np.int64)


def _to_pointer(_: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), generate


_pointer: Any = intrinsic(_to_pointer)


@inlined
def borrowed(places):  # type: ignore[no-untyped-def]
    """The arrays of a `Simulation` at their places, in the order of its fields."""
    return Simulation(
        carray(_pointer(places[0, 0]), (places[0, 1],), OPERATOR),
        carray(_pointer(places[1, 0]), (places[1, 1],), EDGE),
        carray(_pointer(places[2, 0]), (places[2, 1],), LANE),
        carray(_pointer(places[3, 0]), (places[3, 1],), REPLICA),
        carray(_pointer(places[4, 0]), (places[4, 1],), HOST),
        carray(_pointer(places[5, 0]), (places[5, 1], places[5, 2]), RECORD),
        carray(_pointer(places[6, 0]), (places[6, 1], places[6, 2]), ENTRY),
        carray(_pointer(places[7, 0]), (places[7, 1],), ENTRY),
        carray(_pointer(places[8, 0]), (places[8, 1],), SLOT),
        carray(_pointer(places[9, 0]), (places[9, 1], places[9, 2]), FLOAT),
        carray(_pointer(places[10, 0]), (places[10, 1],), FLOAT),
        carray(_pointer(places[11, 0]), (places[11, 1], places[11, 2]), FLOAT),
        carray(_pointer(places[12, 0]), (places[12, 1], places[12, 2]), FLOAT),
        carray(_pointer(places[13, 0]), (places[13, 1],), FLOAT),
        carray(_pointer(places[14, 0]), (places[14, 1],), TOTALS),
        carray(_pointer(places[15, 0]), (places[15, 1],), WORLD),
        carray(_pointer(places[16, 0]), (places[16, 1],), BATCHES),
    )
