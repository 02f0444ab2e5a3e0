"""The best mixture of all the other models, per series, with quantiles that hold.

Every other model learns from the training part; on the validation part the weights are found whose mixture errs least (see
`blending`), at each distance ahead, and the few models that weigh most are kept. The last value always is one of them: it
costs nothing, and is right where a load has died. How far off the mixture has been there makes its quantiles (see
`calibration`). In use, weights and quantiles follow what comes (see `following`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from springtide.errors import SpringtideError, require
from springtide.forecast.mixing.blending import first_weights, moments_of
from springtide.forecast.mixing.calibration import scores
from springtide.forecast.mixing.distances import at_every_step, distances_to
from springtide.forecast.mixing.following import Beginning
from springtide.forecast.models.last_value import LastValue
from springtide.forecast.models.singles import SINGLES, RegisteredModel
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Auto:
    """A mixture of at most `most_members` models and the last value."""

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = "the mixture of the other models that errs least on the validation part, with quantiles"
    reference: ClassVar[str] = (
        'J. M. Bates, C. W. J. Granger, "The Combination of Forecasts", Operational Research Quarterly 20(4), 1969; '
        'I. Gibbs, E. Candès, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021.'
    )

    most_members: int = 4
    members: tuple[RegisteredModel, ...] = ()
    beginning: Beginning | None = None

    def fit(self, train: Windows, validation: Windows, seed: int) -> Auto:
        """Of every model that can learn from these windows, here and now."""
        learnt: list[RegisteredModel] = []
        for model in SINGLES:
            try:
                learnt.append(model().fit(train, validation, seed))
            except SpringtideError:  # too short a past for it, or what it learns with is not installed
                continue
        return self.of(learnt, validation)

    def of(self, learnt: Sequence[RegisteredModel], validation: Windows) -> Auto:
        """The mixture of models that have learnt already."""
        require(len(validation) > 0, "auto: there is no validation window to choose models by")
        distances = distances_to(validation.steps)
        candidates = [model for model in learnt if model.name != LastValue.name] + [LastValue()]
        came = validation.future[:, distances - 1]
        said = np.stack([model.predict(validation.past, validation.steps)[:, distances - 1] for model in candidates], axis=2)
        weights = first_weights(moments_of(said - came[:, :, None])).mean(axis=0)
        heaviest = np.sort(np.argsort(-weights[:-1], kind="stable")[: self.most_members])
        chosen = [*heaviest.tolist(), len(candidates) - 1]
        return replace(
            self,
            members=tuple(candidates[i] for i in chosen),
            beginning=_beginning(distances, said[:, :, chosen], came),
        )

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        """With the weights of the validation part; in use they change (see `following`)."""
        beginning = self.known
        weights = at_every_step(beginning.weights, beginning.distances, steps)
        said = np.stack([model.predict(past, steps) for model in self.members], axis=2)
        mixed: FloatArray = np.einsum("ntm,tm->nt", said, weights)
        return mixed

    @property
    def known(self) -> Beginning:
        """What it has learnt; refused before it has."""
        if self.beginning is None:
            raise SpringtideError("auto has learnt nothing yet: train it first")
        return self.beginning

    @classmethod
    def together(cls, models: Sequence[Auto]) -> Callable[[FloatArray, int], FloatArray]:
        everyone = members_together([model.members for model in models])
        known = [model.known for model in models]

        def predict(pasts: FloatArray, steps: int) -> FloatArray:
            said = everyone(pasts, steps)
            weights = np.zeros((len(models), steps, said.shape[1]))
            for i, beginning in enumerate(known):
                weights[i, :, : beginning.weights.shape[1]] = at_every_step(beginning.weights, beginning.distances, steps)
            mixed: FloatArray = np.einsum("smt,stm->st", said, weights)
            return mixed

        return predict


def members_together(members: Sequence[Sequence[RegisteredModel]]) -> Callable[[FloatArray, int], FloatArray]:
    """What predicts many series with all their members: one row of past rates for each; the axes of the result are series,
    member, step. A series that has fewer members than another has zeros for those it lacks.

    Members of one kind predict together, whatever their series.
    """
    kinds: dict[type[RegisteredModel], list[tuple[int, int]]] = {}
    for s, own in enumerate(members):
        for m, model in enumerate(own):
            kinds.setdefault(type(model), []).append((s, m))
    most = max(len(own) for own in members)
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], Callable[[FloatArray, int], FloatArray]]] = []
    for kind, places in kinds.items():
        rows, slots = np.array(places, np.int64).T
        parts.append((rows, slots, kind.together([members[s][m] for s, m in places])))

    def predict(pasts: FloatArray, steps: int) -> FloatArray:
        said = np.zeros((len(members), most, steps))
        for rows, slots, part in parts:
            everyone = len(rows) == len(members)  # then in their order, and nothing need be copied
            said[rows, slots] = part(pasts if everyone else pasts[rows], steps)
        return said

    return predict


def _beginning(distances: NDArray[np.int64], said: FloatArray, came: FloatArray) -> Beginning:
    moments = moments_of(said - came[:, :, None])
    weights = first_weights(moments)
    mixed = np.einsum("tam,am->ta", said, weights)
    missed = scores(mixed, came)
    known = np.isfinite(missed).all(axis=1)
    require(bool(known.any()), "auto: no validation window is without a gap; give more days, or a shorter future")
    return Beginning(distances=distances, weights=weights, moments=moments, scores=missed[known].T, errors=int(known.sum()))
