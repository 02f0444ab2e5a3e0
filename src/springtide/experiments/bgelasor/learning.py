"""A model that has learnt from a load: one by itself, or the mixture of those that learn in seconds; and a folder of it to be
used in a run.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from springtide.experiments.bgelasor.loads import Load
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.registry import make_model
from springtide.forecast.models.singles import NEURAL, RegisteredModel
from springtide.forecast.running.choosing import QUICK_MODELS, Models
from springtide.forecast.storage import encoded
from springtide.forecast.trained import Trained, TrainedModel, TrainedSeries, recent_file, weights_file, write_trained
from springtide.model.observation import FloatArray

NEURAL_NAMES = tuple(model.name for model in NEURAL)
QUICK_MEMBERS = tuple(name for name in QUICK_MODELS.split(",") if name != Auto.name)


def can_learn(model: str) -> bool:
    """Networks need JAX and optax, which are an extra."""
    return model not in NEURAL_NAMES or find_spec("jax") is not None


def learnt(load: Load, model: str, seed: int) -> RegisteredModel:
    """The model, taught by the training part on one thread; `auto` is the mixture of those that learn in seconds."""
    train, validation = load.windows("train"), load.windows("validation")
    with threadpool_limits(limits=1):
        if model == Auto.name:
            return Auto().of([make_model(name).fit(train, validation, seed) for name in QUICK_MEMBERS], validation)
        return make_model(model).fit(train, validation, seed)


def said_ahead(load: Load, model: RegisteredModel, epochs: int, steps: int) -> FloatArray:
    """What the model says, at the end of each of the first epochs of the test part, of the next `steps`: rows per second."""
    ends = load.bounds.test + np.arange(epochs)
    pasts = load.scale.scaled(load.rates_per_s)[ends[:, None] + np.arange(1 - load.lengths.past, 1)]
    with threadpool_limits(limits=1):
        return load.scale.rates_per_s(model.predict(pasts, steps))


def kept_for_run(load: Load, model: RegisteredModel, folder: Path, source: str) -> Models:
    """A folder from which a run over the test part takes the model: it goes on where training and validation ended."""
    first = load.bounds.test
    mixture = Auto().of([model], load.windows("validation"))
    weights = weights_file(folder, source, Auto.name, 0)
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.write_bytes(encoded(mixture))
    np.save(recent_file(folder, source), load.rates_per_s[first - load.lengths.past : first], allow_pickle=False)
    end = load.begin_of(first)
    series = TrainedSeries(
        name=source,
        interval_s=load.interval_s,
        past=load.lengths.past,
        future=load.lengths.future,
        scale=load.scale,
        end=end,
        models=(TrainedModel(model=Auto.name, repetition=0, seconds=0.0),),
    )
    write_trained(Trained(folder=folder, prepared="", at=end, series=(series,)))
    return Models(folder=folder)
