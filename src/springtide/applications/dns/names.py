"""What is told by a name: which domain was registered, what is below it, and how much it looks like data.

The entropy of a text of n characters, of which c_i are of kind i, is log2(n) - sum(c_i log2(c_i)) / n bits for each character.
It is counted in whole millibits, from a table of whole numbers, so that sums of it are exact in any order:
(T(n) - sum T(c_i)) // n with T(c) = round(1000 c log2(c)).
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MAX_NAME = 253
MAX_LABEL = 63

# Under these, a domain is registered one label further down. Ours are a few of the public list.
DOUBLE_SUFFIXES = ("co.uk", "com.au", "co.jp", "com.br")

_TABLE = np.array([0] + [round(1000 * c * math.log2(c)) for c in range(1, MAX_NAME + 1)], np.int64)

IntArray = NDArray[np.int64]


def entropies_millibit(texts: pa.Array) -> IntArray:
    """The entropy of each text, 0 of an empty one. No loop over texts: characters are counted in a table of texts by bytes."""
    begins, octets = _characters(texts)
    lengths = np.diff(begins)
    of_text = np.repeat(np.arange(lengths.size), lengths)
    counts = np.bincount(of_text * 256 + octets, minlength=lengths.size * 256).reshape(-1, 256)
    return np.where(lengths > 0, (_TABLE[lengths] - _TABLE[counts].sum(axis=1)) // np.maximum(lengths, 1), 0)


def digits(texts: pa.Array) -> IntArray:
    """How many characters of each text are digits."""
    begins, octets = _characters(texts)
    so_far = np.concatenate(([0], np.cumsum((octets >= ord("0")) & (octets <= ord("9")))))
    return np.diff(so_far[begins]).astype(np.int64)


def longest_labels(texts: pa.Array) -> IntArray:
    """The length of the longest label of each text, labels being what lies between dots."""
    begins, octets = _characters(texts)
    dots = np.flatnonzero(octets == ord("."))
    # A label begins where its text does, or after a dot, and ends where the next begins, or a dot earlier.
    edges = np.sort(np.concatenate((begins[:-1], dots + 1)))
    ends = np.sort(np.concatenate((begins[1:], dots)))
    of_text = np.searchsorted(begins, edges, side="right") - 1
    longest = np.zeros(begins.size - 1, np.int64)
    np.maximum.at(longest, np.minimum(of_text, longest.size - 1), ends - edges)
    return longest


def _characters(texts: pa.Array) -> tuple[IntArray, NDArray[np.uint8]]:
    """Where each text begins, with the end of the last; and all their bytes, one text after the other."""
    joined = pa.concat_arrays([texts.cast(pa.large_binary())])  # without offset
    _, begins, octets = joined.buffers()
    where = np.frombuffer(begins, np.int64)[: len(texts) + 1]
    what = np.frombuffer(octets, np.uint8) if octets is not None else np.empty(0, np.uint8)
    return where - where[0], what[where[0] : where[-1]]
