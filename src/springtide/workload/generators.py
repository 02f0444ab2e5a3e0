"""Traces made up from a few numbers, for demonstrations, tests, and questions of the form "what if".

Rules: a generator is a pure function; its keyword arguments are its parameters and their defaults live there and
nowhere else. One that involves chance takes a `seed`: the same arguments and seed give the same trace.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from itertools import accumulate

import numpy as np

from springtide.errors import InvalidValue, nearest, require
from springtide.model.observation import FloatArray
from springtide.workload.traces import Trace, steps_in

_DAY_S = 86_400.0
_PEAK_HOUR = 15.0
_MAX_RATE_PER_S = 1e12  # beyond any stream, and well within what can be drawn from a Poisson distribution

# Real traffic wavers on every scale of time at once: within seconds, within minutes, and over the hour.
_CORRELATION_TIMES_S = (5.0, 120.0, 3600.0)


def constant(rate_per_s: float = 100.0, duration_s: float = 3600.0, step_s: float = 1.0) -> Trace:
    """The same rate throughout; the duration is rounded up to whole steps."""
    _require_between("constant", 0, _MAX_RATE_PER_S, rate_per_s=rate_per_s)
    count = steps_in(duration_s, step_s, owner="generator constant")
    return Trace(name="constant", step_s=step_s, counts=np.full(count, rate_per_s * step_s))


def steps(levels: tuple[float, ...] = (100.0, 500.0, 50.0), hold_s: float = 600.0, step_s: float = 1.0) -> Trace:
    """One rate after another, in rows per second, each held for `hold_s` rounded up to whole steps."""
    require(bool(levels), "generator steps: levels must name at least one rate, as in levels=100/500/50")
    for level in levels:
        _require_between("steps", 0, _MAX_RATE_PER_S, levels=level)
    _require_positive("steps", hold_s=hold_s)
    held = steps_in(hold_s, step_s, owner="generator steps")
    steps_in(held * step_s * len(levels), step_s, owner="generator steps")  # refuses more than a trace may have
    return Trace(name="steps", step_s=step_s, counts=np.repeat(np.array(levels) * step_s, held))


def spikes(
    base_per_s: float = 100.0,
    spike_per_s: float = 1000.0,
    every_s: float = 600.0,
    width_s: float = 30.0,
    duration_s: float = 3600.0,
    step_s: float = 1.0,
) -> Trace:
    """A base rate, and a spike of `width_s` in the middle of every `every_s`; a spike may begin or end within a step."""
    _require_between("spikes", 0, _MAX_RATE_PER_S, base_per_s=base_per_s, spike_per_s=spike_per_s)
    _require_positive("spikes", every_s=every_s)
    _require_between("spikes", 0, every_s, width_s=width_s)
    edges_s = np.arange(steps_in(duration_s, step_s, owner="generator spikes") + 1) * step_s
    periods, phase_s = np.divmod(edges_s, every_s)
    spiked_s = periods * width_s + np.clip(phase_s - (every_s - width_s) / 2, 0.0, width_s)
    high_s = np.clip(np.diff(spiked_s), 0.0, step_s)
    return Trace(name="spikes", step_s=step_s, counts=base_per_s * (step_s - high_s) + spike_per_s * high_s)


def day_cycle(
    seed: int,
    mean_per_s: float = 1000.0,
    peak_to_mean: float = 1.6,
    noise: float = 0.05,
    days: float = 1.0,
    step_s: float = 60.0,
) -> Trace:
    """Busy afternoons and quiet nights, from midnight on. `noise` is the relative standard deviation around the cycle."""
    _require_between("day-cycle", 0, _MAX_RATE_PER_S, mean_per_s=mean_per_s)
    _require_between("day-cycle", 1, 10, peak_to_mean=peak_to_mean)
    _require_between("day-cycle", 0, 1, noise=noise)
    _require_positive("day-cycle", days=days)
    count = steps_in(days * _DAY_S, step_s, owner="generator day-cycle")
    time_s = (np.arange(count, dtype=np.float64) + 0.5) * step_s
    wavering = _wavering(_chance("day-cycle", seed), noise, count, step_s)
    return Trace(name="day-cycle", step_s=step_s, counts=mean_per_s * step_s * _cycle(time_s, peak_to_mean) * wavering)


def bursty_day(
    seed: int,
    mean_per_s: float = 1000.0,
    peak_to_mean: float = 1.6,
    noise: float = 0.1,
    bursts: int = 7,
    flash_to_mean: float = 2.5,
) -> Trace:
    """A day as a busy service sees it, in steps of one second: a day cycle that wavers, bursts, and a flash crowd.

    Bursts come at any time, rise within seconds and fade within minutes; the flash crowd comes between 9 and 20 h,
    rises within minutes and fades within hours. `peak_to_mean` and `flash_to_mean` are the heights of the day cycle
    and of the flash crowd above it, as multiples of the cycle's mean; `mean_per_s` is the mean of the whole day. The
    rows of each second are drawn from a Poisson distribution.
    """
    _require_between("bursty-day", 0, _MAX_RATE_PER_S, mean_per_s=mean_per_s)
    _require_between("bursty-day", 1, 10, peak_to_mean=peak_to_mean)
    _require_between("bursty-day", 0, 1, noise=noise)
    _require_between("bursty-day", 0, 1000, bursts=bursts, flash_to_mean=flash_to_mean)
    chance = _chance("bursty-day", seed)
    time_s = np.arange(_DAY_S)
    load = _cycle(time_s, peak_to_mean)
    for _ in range(bursts):
        since_s, height = time_s - chance.uniform(0, _DAY_S), chance.lognormal(mean=-0.2, sigma=0.5)
        load += height * _surge(since_s, rise_s=chance.uniform(3, 30), fade_s=chance.uniform(60, 600))
    since_s = time_s - chance.uniform(9, 20) * 3600
    load += flash_to_mean * _surge(since_s, rise_s=chance.uniform(60, 300), fade_s=chance.uniform(1800, 5400))
    load *= _wavering(chance, noise, time_s.size, 1.0)
    rows = chance.poisson(mean_per_s * load / load.mean())
    return Trace(name="bursty-day", step_s=1.0, counts=rows.astype(np.float64))


def stable_stand_in(seed: int, mean_per_s: float = 1000.0, noise: float = 0.05, days: float = 60.0) -> Trace:
    """A load that stays about the same, in steps of five minutes: a stand-in for the "stable" load of BGElasor.

    That recording was not published. This is a constant with noise of relative standard deviation `noise`, part of which
    wavers over minutes and hours; it is no recording, and errors on it say nothing of the paper's.
    """
    _require_between("stable-stand-in", 0, _MAX_RATE_PER_S, mean_per_s=mean_per_s)
    _require_between("stable-stand-in", 0, 1, noise=noise)
    _require_between("stable-stand-in", 1, 3650, days=days)
    step_s, count = 300.0, round(days * _DAY_S / 300.0)
    wavering = _wavering(_chance("stable-stand-in", seed), noise, count, step_s)
    return Trace(name="stable-stand-in", step_s=step_s, counts=mean_per_s * step_s * wavering)


GENERATORS: Mapping[str, Callable[..., Trace]] = {
    function.__name__.replace("_", "-"): function
    for function in (constant, steps, spikes, day_cycle, bursty_day, stable_stand_in)
}


def generate(spec: str, seed: int) -> Trace:
    """The trace of a generator written as `NAME` or `NAME:PARAMETER=VALUE,...`; numbers of a list are split by `/`.

    `seed` is used by generators that involve chance, unless the spec has a seed of its own.

    >>> generate("steps:levels=10/20,hold_s=2", seed=0).counts
    array([10., 10., 20., 20.])
    """
    name, _, text = spec.partition(":")
    if name not in GENERATORS:
        raise InvalidValue(f"there is no generator {name!r}; {nearest(name, GENERATORS)}")
    parameters = inspect.signature(GENERATORS[name], eval_str=True).parameters
    defaults = {"seed": seed} if "seed" in parameters else {}
    return GENERATORS[name](**{**defaults, **_arguments(name, text, parameters)})


def _arguments(name: str, text: str, parameters: Mapping[str, inspect.Parameter]) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in parameters:
            raise InvalidValue(f"generator {name}: there is no parameter {key!r}; {nearest(key, parameters)}")
        require(key not in arguments, f"generator {name}: {key} is given twice; give it once")
        arguments[key] = _parsed(name, key, value, parameters[key].annotation)
    return arguments


def _parsed(name: str, key: str, value: str, kind: object) -> object:
    parse, wanted = _PARSERS[kind]
    try:
        return parse(value)
    except ValueError:
        raise InvalidValue(f"generator {name}: {key} must be {wanted}, not {value!r}") from None


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split("/"))


_PARSERS: Mapping[object, tuple[Callable[[str], object], str]] = {
    int: (int, "a whole number"),
    float: (float, "a number"),
    tuple[float, ...]: (_numbers, "numbers split by '/', as in 100/500/50"),
}


def _require_between(name: str, low: float, high: float, **values: float) -> None:
    for key, value in values.items():
        require(low <= value <= high, f"generator {name}: {key} must lie between {low:g} and {high:g}, not {value:g}")


def _require_positive(name: str, **values: float) -> None:
    for key, value in values.items():
        require(math.isfinite(value) and value > 0, f"generator {name}: {key} must be above 0, not {value:g}")


def _chance(name: str, seed: int) -> np.random.Generator:
    require(seed >= 0, f"generator {name}: seed must be 0 or more, not {seed}")
    return np.random.default_rng(seed)


def _cycle(time_s: FloatArray, peak_to_mean: float) -> FloatArray:
    """Load over the day, 1 on average over whole days: exp(k cos(hour)), which is positive however high its peak."""
    # The mean of exp(k cos) is I0(k), so the peak stands exp(k) / I0(k) above it; the table inverts that.
    sharpness = np.linspace(0.0, 50.0, 5001)
    k = np.interp(peak_to_mean, np.exp(sharpness) / np.i0(sharpness), sharpness)
    angle = 2 * np.pi * (time_s - _PEAK_HOUR * 3600.0) / _DAY_S
    load: FloatArray = np.exp(k * np.cos(angle)) / np.i0(k)
    return load


def _surge(since_s: FloatArray, *, rise_s: float, fade_s: float) -> FloatArray:
    """Nothing before it begins, a steep rise to 1, and a slow decay."""
    elapsed_s = np.maximum(since_s, 0.0)
    height_s = rise_s * math.log1p(fade_s / rise_s)
    height = -math.expm1(-height_s / rise_s) * math.exp(-height_s / fade_s)
    surge: FloatArray = -np.expm1(-elapsed_s / rise_s) * np.exp(-elapsed_s / fade_s) / height
    return surge


def _wavering(chance: np.random.Generator, noise: float, count: int, step_s: float) -> FloatArray:
    """Factors around 1 with relative standard deviation `noise`, correlated over several times at once."""
    waves = sum(_correlated(chance, math.exp(-step_s / time_s), count) for time_s in _CORRELATION_TIMES_S)
    deviation = noise / math.sqrt(len(_CORRELATION_TIMES_S))
    factors: FloatArray = np.exp(deviation * waves - noise**2 / 2)
    return factors


def _correlated(chance: np.random.Generator, memory: float, count: int) -> FloatArray:
    """Normal noise of variance 1 in which each value keeps the share `memory` of the one before (AR(1))."""
    shocks = chance.standard_normal(count)
    shocks[1:] *= math.sqrt(1 - memory**2)
    return np.fromiter(accumulate(shocks, lambda value, shock: memory * value + shock), np.float64, count)
