"""Models that have learnt, on the disk: what is in the folder, and how it is read.

    manifest.json                              which models there are of each series, and what they need to predict
    weights/<series>/<model>-<repetition>.npz  one model each, as `storage` writes it
    weights/<series>/recent.npy                the newest rates of its data, as many as a model looks back

Rules: the manifest is written last, as a whole. A folder that is damaged, or of another version, is refused in one line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
import numpy as np

from springtide.errors import SpringtideError, nearest
from springtide.forecast.evaluation import Score
from springtide.forecast.models.singles import RegisteredModel
from springtide.forecast.storage import decoded
from springtide.model.observation import FloatArray
from springtide.model.windows import Scale

FORMAT = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """One model of one series: how long it learnt, and how it does on the validation part; or why there is none."""

    model: str
    repetition: int
    seconds: float
    validation: tuple[Score, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSeries:
    """The models of one series, and what they predict from: the newest `past` rates, scaled.

    `end` is when the last interval ended that was in the data, in UTC.
    """

    name: str
    interval_s: float
    past: int
    future: int
    scale: Scale
    end: str
    models: tuple[TrainedModel, ...]

    def named(self, model: str) -> list[TrainedModel]:
        """Every repetition of a model that has learnt."""
        return [one for one in self.models if one.model == model and one.problem is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A folder of models. `prepared` is the folder of the data that they learnt from, `at` when they did (ISO, UTC)."""

    folder: Path
    prepared: str
    at: str
    series: tuple[TrainedSeries, ...]

    def named(self, name: str) -> TrainedSeries:
        for series in self.series:
            if series.name == name:
                return series
        raise SpringtideError(f"{self.folder}: has no model of {name!r}; {nearest(name, (s.name for s in self.series))}")

    def load(self, series: str, model: str, repetition: int = 0) -> RegisteredModel:
        """One model of one series."""
        there = {one.model for one in self.named(series).models if one.problem is None}
        if model not in there:
            raise SpringtideError(f"{self.folder}: has no model {model!r} of {series!r}; {nearest(model, there)}")
        return load_weights(weights_file(self.folder, series, model, repetition))

    def recent(self, series: str) -> FloatArray:
        """The newest rates of the data that the models learnt from, in rows per second, the oldest first."""
        file = recent_file(self.folder, series)
        try:
            found: FloatArray = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            raise SpringtideError(f"{file}: is damaged or missing; train the models again") from None
        return found


def weights_file(folder: Path, series: str, model: str, repetition: int) -> Path:
    return folder / WEIGHTS / quote(series, safe="") / f"{model}-{repetition}.npz"


def recent_file(folder: Path, series: str) -> Path:
    return folder / WEIGHTS / quote(series, safe="") / "recent.npy"


def load_weights(file: Path) -> RegisteredModel:
    try:
        stored = file.read_bytes()
    except FileNotFoundError:
        raise SpringtideError(f"{file}: there is no such file; train the models again") from None
    except OSError as error:
        raise SpringtideError(f"{file}: cannot be read: {error.strerror}") from None
    return decoded(stored, file)


class _Head(msgspec.Struct):
    format: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    format: int
    prepared: str
    at: str
    series: tuple[TrainedSeries, ...]


def open_trained(folder: str | Path) -> Trained:
    """The models in a folder. Their weights are not read yet."""
    place = Path(folder).expanduser().resolve()
    file = place / MANIFEST
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise SpringtideError(f"{folder}: holds no models, for there is no {MANIFEST} in it; train some first") from None
    except OSError as error:
        raise SpringtideError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        written = msgspec.json.decode(content, type=_Head).format
        if written != FORMAT:
            raise SpringtideError(f"{file}: has the format {written} of another version, not {FORMAT}; train the models again")
        manifest = msgspec.json.decode(content, type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpringtideError(f"{file}: is damaged, or no models' manifest ({error}); train the models again") from None
    return Trained(folder=place, prepared=manifest.prepared, at=manifest.at, series=manifest.series)


def write_trained(trained: Trained) -> None:
    manifest = _Manifest(format=FORMAT, prepared=trained.prepared, at=trained.at, series=trained.series)
    file = trained.folder / MANIFEST
    beside = file.with_suffix(".new")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    os.replace(beside, file)
