"""A checksum that knows the order: h(1) = v(1), h(n) = h(n-1) * 31 + v(n), modulo 2^63.

A tuple's v is its value xor the CRC-32 of its payload. A tuple that is lost, comes twice, or comes before its turn changes
the sum of its key. There are two ways to it, for two purposes: `folded` goes on from a sum that is kept, tuple by tuple;
`summed` takes all tuples at once, each times its power of 31, and is what the first is checked with.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pandas as pd

FACTOR = 31
_MASK = 2**63 - 1


def tuple_value(value: int, payload: str) -> int:
    return value ^ zlib.crc32(payload.encode())


def folded(checksum: int, values: Iterable[int]) -> int:
    """The sum with more tuples, in their order.

    >>> folded(folded(0, [5]), [7, 1]) == folded(0, [5, 7, 1]) != folded(0, [7, 5, 1])
    True
    """
    for value in values:
        checksum = (checksum * FACTOR + value) & _MASK
    return checksum


def summed(tuples: pd.DataFrame) -> pd.DataFrame:
    """Of all tuples (`row`, `key`, `value`, `payload`): `key`, `tuples` and `checksum` of every key."""
    ordered = tuples.sort_values("row")
    crc = np.fromiter((zlib.crc32(p.encode()) for p in ordered["payload"]), np.uint64, len(ordered))
    terms = ordered["value"].to_numpy(np.uint64) ^ crc
    by_key = ordered.groupby("key")["row"]
    after_it = (by_key.transform("size") - 1 - by_key.cumcount()).to_numpy(np.int64)
    factors = np.full(int(after_it.max(initial=0)) + 1, FACTOR, np.uint64)
    factors[0] = 1
    powers = np.cumprod(factors)
    # Unsigned numbers wrap around at 2^64, a multiple of 2^63: the remainder is the same.
    weighted = pd.DataFrame({"key": ordered["key"].to_numpy(), "term": terms * powers[after_it]})
    found = weighted.groupby("key")["term"].agg(["size", "sum"]).reset_index()
    checksums = (found["sum"].to_numpy(np.uint64) & np.uint64(_MASK)).astype(np.int64)
    return pd.DataFrame({"key": found["key"], "tuples": found["size"], "checksum": checksums})
