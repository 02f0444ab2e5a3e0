"""Recurrent networks are taught here: the only module that imports torch, itself imported only when a network is to learn.

Training is on one thread, and chance is from generators of its own: the same windows and seed give the same weights, whatever
else the process does. What was missing in the recording is never learnt from.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from springtide.errors import require
from springtide.forecast.recurrent.kernel import Float32Array
from springtide.forecast.recurrent.network import Network
from springtide.forecast.recurrent.settings import Reading, Settings
from springtide.model.observation import FloatArray
from springtide.model.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Which cells the hidden layer has, and whether a second one reads backwards."""

    cell: str
    bidirectional: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Samples:
    """Windows as a network sees them: in deviations from the level of the newest rates that it reads.

    A future rate that is missing is 0 and not `known`.
    """

    read: Tensor
    future: Tensor
    known: Tensor

    def __len__(self) -> int:
        return len(self.read)

    def some(self, rows: Tensor) -> _Samples:
        return _Samples(read=self.read[rows], future=self.future[rows], known=self.known[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What a network sees of a window."""

    reading: Reading
    deviation: float

    def samples(self, windows: Windows) -> _Samples:
        read = windows.past[:, windows.past.shape[1] - self.reading.rates :]
        level = read.mean(axis=1, keepdims=True)
        pooled = read.reshape(len(read), self.reading.recurrent_steps, self.reading.inputs, self.reading.pool).mean(axis=3)
        known = ~np.isnan(windows.future)

        def seen(rates: FloatArray) -> Tensor:
            shift = level.reshape((-1,) + (1,) * (rates.ndim - 1))
            return torch.from_numpy(((rates - shift) / self.deviation).astype(np.float32))

        return _Samples(
            read=seen(pooled),
            future=seen(np.where(known, windows.future, level)),
            known=torch.from_numpy(known),
        )


class _Module(torch.nn.Module):
    """The network while it learns."""

    def __init__(self, kind: Kind, sizes: tuple[int, int], future: int) -> None:
        """`sizes` are those of one step's inputs and of one direction's state."""
        super().__init__()
        layer = torch.nn.LSTM if kind.cell == "lstm" else torch.nn.GRU
        # On no device, as torch would draw first weights from a chance that the whole process shares.
        empty = layer(*sizes, batch_first=True, bidirectional=kind.bidirectional, device="meta")
        self.hidden = empty.to_empty(device="cpu")
        directions = 2 if kind.bidirectional else 1
        self.dense = torch.nn.Parameter(torch.zeros(directions * sizes[1], future))
        self.bias = torch.nn.Parameter(torch.zeros(future))

    def states(self, samples: _Samples) -> Tensor:
        """The last state of each direction, side by side."""
        last = self.hidden(samples.read)[1]
        if isinstance(last, tuple):
            last = last[0]
        return torch.cat(list(last), dim=1)

    def answer(self, states: Tensor) -> Tensor:
        answer: Tensor = states @ self.dense + self.bias  # Eq. (3), without its activation.
        return answer


def taught(kind: Kind, settings: Settings, windows: tuple[Windows, Windows], seed: int) -> Network:
    """The network that did best on the validation windows, the second, of those that the training windows, the first, gave."""
    torch.set_num_threads(1)
    train, validation = _thinned(windows[0], settings.most_windows), _thinned(windows[1], settings.most_validation_windows)
    _check(train, validation)
    view = _View(reading=settings.reading(train.past.shape[1]), deviation=float(train.past.std()) or 1.0)
    chance = torch.Generator().manual_seed(seed)
    module = _Module(kind, (view.reading.inputs, settings.hidden), train.steps)
    bound = settings.hidden**-0.5
    for weights in module.hidden.parameters():
        torch.nn.init.uniform_(weights, -bound, bound, generator=chance)
    return _network(_best(module, settings, (view.samples(train), view.samples(validation)), chance), view)


def _thinned(windows: Windows, most: int) -> Windows:
    return windows.every(max(1, -(-len(windows) // most)))


def _check(train: Windows, validation: Windows) -> None:
    for part, windows in (("training", train), ("validation", validation)):
        known = int((~np.isnan(windows.future)).sum())
        require(known > 0, f"{part}: {len(windows):,} windows with {known:,} known future rates, and at least one is needed")
    require(
        validation.steps == train.steps and validation.past.shape[1] == train.past.shape[1],
        f"training windows of {train.past.shape[1]:,} past and {train.steps:,} future rates, "
        f"validation windows of {validation.past.shape[1]:,} and {validation.steps:,}: they must be alike",
    )


def _best(module: _Module, settings: Settings, parts: tuple[_Samples, _Samples], chance: torch.Generator) -> _Module:
    """The module as it was at the check where it erred least.

    All updates are made, as the learning rate falls towards the last of them: errors fall late, after they have risen.
    """
    train, validation = parts
    adam = torch.optim.Adam(module.parameters(), lr=settings.learning_rate)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, settings.learning_rate, max(2, settings.updates))
    best, least = module, np.inf
    between = -(-settings.updates // settings.checks)
    batches = _batches(len(train), settings.batch, chance)
    for update in range(1, settings.updates + 1):
        _learn(module, settings, train.some(next(batches)), chance)
        adam.step()
        rate.step()
        if update % between and update != settings.updates:
            continue
        with torch.no_grad():
            error = float(_error(module.answer(module.states(validation)), validation))
        if error < least:
            best, least = copy.deepcopy(module), error
    return best


def _learn(module: _Module, settings: Settings, batch: _Samples, chance: torch.Generator) -> None:
    """The gradients of one batch. Dropout has its own chance, which torch's layer would take from the whole process."""
    states = module.states(batch)
    kept = torch.rand(states.shape, generator=chance) >= settings.dropout
    module.zero_grad()
    _error(module.answer(states * kept / (1.0 - settings.dropout)), batch).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(module.parameters(), settings.longest_gradient)


def _error(answer: Tensor, samples: _Samples) -> Tensor:
    """The paper's equation (4), over the future rates that are known."""
    squares: Tensor = (answer - samples.future) ** 2 * samples.known
    return squares.sum() / samples.known.sum().clamp(min=1)


def _batches(windows: int, size: int, chance: torch.Generator) -> Iterator[Tensor]:
    """Rows of the windows, all of them in another order each time round, for ever."""
    while True:
        order = torch.randperm(windows, generator=chance)
        for first in range(0, windows, size):
            yield order[first : first + size]


def _network(module: _Module, view: _View) -> Network:
    weights: dict[str, NDArray[np.float32]] = {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}
    directions = ("", "_reverse") if module.hidden.bidirectional else ("",)

    def both(name: str) -> Float32Array:
        # Torch multiplies from the left; here rows are inputs, so that the weights of one input lie side by side.
        return np.stack([np.ascontiguousarray(weights[f"hidden.{name}_l0{direction}"].T) for direction in directions])

    return Network(
        recurrent_steps=view.reading.recurrent_steps,
        pool=view.reading.pool,
        deviation=view.deviation,
        from_input=both("weight_ih"),
        from_state=both("weight_hh"),
        input_bias=both("bias_ih"),
        state_bias=both("bias_hh"),
        dense=weights["dense"],
        bias=weights["bias"],
    )
