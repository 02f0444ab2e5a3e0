"""Series whose future is known, and windows of them, for the tests of models."""

from __future__ import annotations

import numpy as np

from springtide.model.windows import Windows, windows_of

INTERVAL_S = 1800.0
DAY = 48


def days(count: int, *, noise: float = 0.02, seed: int = 1) -> np.ndarray:
    """Rates between about 0.2 and 0.8 with the same shape every day."""
    chance = np.random.default_rng(seed)
    time = np.arange(count * DAY)
    shape = 0.5 + 0.25 * np.sin(2 * np.pi * time / DAY) + 0.1 * np.sin(6 * np.pi * time / DAY)
    return shape + noise * chance.standard_normal(len(time))


def arma(phi: list[float], theta: list[float], length: int, *, seed: int = 5) -> np.ndarray:
    """A process with shocks of the standard deviation 1, after it has forgotten how it began."""
    shock = np.random.default_rng(seed).standard_normal(length + 500)
    values = np.zeros(len(shock))
    for t in range(len(shock)):
        values[t] = shock[t]
        values[t] += sum(p * values[t - 1 - i] for i, p in enumerate(phi) if t > i)
        values[t] += sum(q * shock[t - 1 - i] for i, q in enumerate(theta) if t > i)
    return values[500:]


def cut(rates: np.ndarray, *, past: int, future: int, stride: int = 1, share: float = 0.75) -> tuple[Windows, Windows]:
    """Windows to learn from, and later ones to judge by."""
    edge = int(len(rates) * share)
    windows = windows_of(rates, interval_s=INTERVAL_S, past=past, future=future, stride=stride)
    learnt, later = windows.origins + future < edge, windows.origins >= edge
    return _some(windows, learnt), _some(windows, later)


def _some(windows: Windows, which: np.ndarray) -> Windows:
    return Windows(
        interval_s=windows.interval_s,
        origins=windows.origins[which],
        past=windows.past[which],
        future=windows.future[which],
    )


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


# What no model may break on: nothing at all, always the same, far beyond all that was learnt, and a single spike.
def wild_pasts(past: int) -> np.ndarray:
    spike = np.full(past, 0.3)
    spike[past // 2] = 100.0
    return np.stack([np.zeros(past), np.full(past, 0.5), np.linspace(0.0, 100.0, past), -np.ones(past), spike])
