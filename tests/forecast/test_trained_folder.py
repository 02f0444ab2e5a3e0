"""A folder of models: what is refused, in one line."""

import json
from pathlib import Path

import pytest
from trained_models import trained_folder

from springtide.errors import SpringtideError
from springtide.forecast.trained import MANIFEST, open_trained, recent_file


def test_a_folder_without_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpringtideError, match=r"holds no models, .*; train some first$"):
        open_trained(tmp_path)


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "models", ["a"])
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format": 99}))

    with pytest.raises(SpringtideError, match=r"has the format 99 of another version, not 1; train the models again$"):
        open_trained(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = trained_folder(tmp_path / "models", ["a"])
    (folder / MANIFEST).write_bytes(content)

    with pytest.raises(SpringtideError, match="is damaged") as refused:
        open_trained(folder)
    assert "\n" not in str(refused.value)


def test_what_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    trained = open_trained(trained_folder(tmp_path / "models", ["clicks"]))

    with pytest.raises(SpringtideError, match="did you mean 'clicks'"):
        trained.load("click", "auto")
    with pytest.raises(SpringtideError, match="has no model 'bigru' of 'clicks'"):
        trained.load("clicks", "bigru")


def test_damaged_rates_are_refused(tmp_path: Path) -> None:
    folder = trained_folder(tmp_path / "models", ["clicks"])
    recent_file(folder, "clicks").write_bytes(b"nonsense")

    with pytest.raises(SpringtideError, match="is damaged or missing"):
        open_trained(folder).recent("clicks")
