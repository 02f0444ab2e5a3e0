"""What the four recurrent models share: a network that JAX trains and numpy arrays keep.

Departures from the paper (W. Mu et al., BGElasor, section 3.2), the same for all four kinds, as the paper leaves the sizes open
and gives no code:

* consecutive rates are grouped: one recurrent step reads many of them, each input the mean of a few. One rate a step
  takes longer to learn and errs more;
* rates are read as differences from the mean level of the window, and so is what is foreseen: level shifts are kept up with;
* the dense layer has the last state of each direction, and gives all future rates at once. In equation (3) it has the states
  of one time t; but at the newest time the backward layer has read only the newest rates;
* the dense layer has no activation, as rates beyond those of the training part must be possible, and dropout before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from springtide.errors import SpringtideError
from springtide.forecast.recurrent.network import Network, continuing
from springtide.forecast.recurrent.settings import Settings
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrentForecaster:
    """A recurrent layer of `cell`s, in one direction or two, and a dense layer."""

    name: ClassVar[str]
    cell: ClassVar[str]
    bidirectional: ClassVar[bool]

    settings: Settings = field(default_factory=Settings)
    network: Network = field(default_factory=Network)

    def fit(self, train: Windows, validation: Windows, seed: int) -> Self:
        try:
            from springtide.forecast.recurrent import training  # noqa: PLC0415 - JAX is large, and only this needs it
        except ModuleNotFoundError as missing:
            raise SpringtideError(f"training {self.name} needs jax and optax: pip install 'springtide[neural]'") from missing
        kind = training.Kind(cell=self.cell, bidirectional=self.bidirectional)
        return replace(self, network=training.taught(kind, self.settings, (train, validation), seed))

    def predict(self, past: FloatArray, steps: int) -> FloatArray:
        return self.network.continued(past, steps)

    @classmethod
    def together(cls, models: Sequence[Self]) -> Callable[[FloatArray, int], FloatArray]:
        return continuing([model.network for model in models])
