"""Every forecasting model by its name: the single ones of `singles`, and the one that is made of them."""

from __future__ import annotations

from springtide.errors import SpringtideError, nearest
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.singles import SINGLES, RegisteredModel

_MODELS: tuple[type[RegisteredModel], ...] = (*SINGLES, Auto)


def models() -> dict[str, type[RegisteredModel]]:
    """Every model, by name."""
    return {model.name: model for model in _MODELS}


def make_model(name: str) -> RegisteredModel:
    """The model of that name, which has learnt nothing yet.

    >>> make_model("last-value")
    LastValue()
    """
    known = models()
    if name not in known:
        raise SpringtideError(f"there is no model {name!r}; {nearest(name, known)}")
    return known[name]()
