"""Stored models: what is read back, and what is refused."""

import io
import json

import numpy as np
import pytest

from springtide.errors import SpringtideError
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.yesterday import Yesterday
from springtide.forecast.storage import FORMAT, decoded, encoded
from springtide.model.windows import windows_of


def mixture() -> Auto:
    rates = np.random.default_rng(0).random(400)
    windows = windows_of(rates, interval_s=3600.0, past=48, future=6)
    return Auto().of([LastValue(), Yesterday(cycle=24)], windows)


def test_a_mixture_keeps_its_members() -> None:
    again = decoded(encoded(mixture()), "models/x.npz")

    assert isinstance(again, Auto)
    assert [member.name for member in again.members] == ["yesterday", "last-value"]
    np.testing.assert_array_equal(again.known.weights, mixture().known.weights)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused_in_one_line(share: float) -> None:
    stored = encoded(mixture())

    with pytest.raises(SpringtideError, match=r"^models/x.npz: is damaged, .*; train it again$"):
        decoded(stored[: int(share * len(stored))], "models/x.npz")


def test_a_file_with_a_wrong_byte_is_refused() -> None:
    stored = bytearray(encoded(mixture()))
    stored[len(stored) // 2] ^= 0xFF

    with pytest.raises(SpringtideError, match="is damaged"):
        decoded(bytes(stored), "models/x.npz")


def test_a_file_of_another_version_is_refused() -> None:
    with np.load(io.BytesIO(encoded(LastValue()))) as archive:
        header = json.loads(bytes(archive["header"]))
    header["format"] = FORMAT + 1
    written = io.BytesIO()
    np.savez(written, header=np.frombuffer(json.dumps(header).encode(), np.uint8))

    with pytest.raises(SpringtideError, match=rf"has the format {FORMAT + 1} of another version, not {FORMAT}; train it again"):
        decoded(written.getvalue(), "models/x.npz")


def test_a_model_that_no_one_knows_is_refused() -> None:
    written = io.BytesIO()
    header = {"format": FORMAT, "model": "crystal-ball", "fields": {}}
    np.savez(written, header=np.frombuffer(json.dumps(header).encode(), np.uint8))

    with pytest.raises(SpringtideError, match="is damaged"):
        decoded(written.getvalue(), "models/x.npz")


def test_nothing_that_runs_code_is_read() -> None:
    written = io.BytesIO()
    np.save(written, np.array([{"code": print}], dtype=object), allow_pickle=True)

    with pytest.raises(SpringtideError, match="is damaged"):
        decoded(written.getvalue(), "models/x.npz")
