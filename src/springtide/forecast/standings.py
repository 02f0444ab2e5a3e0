"""How models stand on each series: means and spreads over repetitions, beside ARIMA and beside the paper's figures.

Table 1 of W. Mu et al., "BGElasor", NPC 2019, tells neither how far ahead it looks nor on what scale its errors are, so only
ratios to ARIMA's error can be compared with it. Its ARIMA errs by more than one standard deviation of the load it calls
periodic (1.252): a single forecast of all test days does that, one that begins anew at each interval does not. So the errors of
ARIMA from a single origin are told too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from springtide.forecast.evaluation import Score
from springtide.forecast.models.arima import Arima
from springtide.forecast.models.auto import Auto
from springtide.forecast.models.registry import models

# Table 1: RMSE and MAE.
PAPER: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "stable": {
        "arima": (0.207, 0.156),
        "svr": (0.163, 0.127),
        "lstm": (0.141, 0.113),
        "gru": (0.124, 0.098),
        "bilstm": (0.119, 0.094),
        "bigru": (0.101, 0.081),
    },
    "periodic": {
        "arima": (1.252, 0.888),
        "svr": (0.789, 0.589),
        "lstm": (0.541, 0.397),
        "gru": (0.531, 0.381),
        "bilstm": (0.529, 0.385),
        "bigru": (0.490, 0.341),
    },
    "fluctuating": {
        "arima": (1.001, 0.713),
        "svr": (0.720, 0.504),
        "lstm": (0.639, 0.433),
        "gru": (0.637, 0.434),
        "bilstm": (0.624, 0.426),
        "bigru": (0.581, 0.401),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How one model did on the test part of one series. `from_one_origin` is told of ARIMA only."""

    series: str
    model: str
    repetition: int
    scores: tuple[Score, ...]
    from_one_origin: Score | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAt:
    """Errors so many intervals ahead, in standard deviations: means over repetitions, and the standard deviation over them.

    `of_arima` is the RMSE as a share of ARIMA's.
    """

    distance: int
    rmse: float
    rmse_spread: float
    mae: float
    mae_spread: float
    of_arima: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One model on one series. `paper` is Table 1's RMSE and MAE, and its RMSE as a share of ARIMA's."""

    model: str
    repetitions: int
    errors: tuple[ErrorAt, ...]
    seconds: float
    paper: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The best single model so many intervals ahead, and how the mixture does beside it."""

    distance: int
    best: str
    of_arima: float | None
    auto_of_best: float | None
    auto_coverage: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesStandings:
    """All models on one series; `problems` tells why some have no errors."""

    series: str
    load: str | None
    interval_s: float
    gaps_filled: int
    models: tuple[Standing, ...]
    verdicts: tuple[Verdict, ...]
    arima_from_one_origin: Score | None
    problems: dict[str, str]


def load_of(series: str) -> str | None:
    """Which of the paper's loads a series is, by its name.

    >>> load_of("bgelasor_periodic"), load_of("stable-stand-in"), load_of("twitter")
    ('periodic', 'stable', None)
    """
    known = {"bgelasor-periodic": "periodic", "bgelasor-fluctuating": "fluctuating", "stable-stand-in": "stable"}
    return known.get(series.replace("_", "-"))


def standings(series: str, judged: Sequence[Judged], seconds: Mapping[str, float]) -> tuple[Standing, ...]:
    """Every model that was judged, in the usual order."""
    mine: dict[str, list[Judged]] = {}
    for one in judged:
        mine.setdefault(one.model, []).append(one)
    arima = {error.distance: error.rmse for error in _errors(mine.get(Arima.name, []), {})}
    paper = PAPER.get(load_of(series) or "", {})
    return tuple(
        Standing(
            model=name,
            repetitions=len(mine[name]),
            errors=_errors(mine[name], arima),
            seconds=seconds.get(name, 0.0),
            paper=(*paper[name], paper[name][0] / paper["arima"][0]) if name in paper else None,
        )
        for name in models()
        if name in mine
    )


def verdicts(found: Sequence[Standing]) -> tuple[Verdict, ...]:
    """At each distance, which single model erred least, and how the mixture did."""
    by_distance: dict[int, dict[str, ErrorAt]] = {}
    for standing in found:
        for error in standing.errors:
            by_distance.setdefault(error.distance, {})[standing.model] = error
    told = []
    for distance, errors in sorted(by_distance.items()):
        singles = {name: error for name, error in errors.items() if name != Auto.name}
        if not singles:
            continue
        best = min(singles, key=lambda name: singles[name].rmse)
        auto = errors.get(Auto.name)
        told.append(
            Verdict(
                distance=distance,
                best=best,
                of_arima=singles[best].of_arima,
                auto_of_best=None if auto is None else _ratio(auto.rmse, singles[best].rmse),
                auto_coverage=None if auto is None else auto.coverage,
            )
        )
    return tuple(told)


def _errors(repetitions: Sequence[Judged], arima: Mapping[int, float]) -> tuple[ErrorAt, ...]:
    by_distance: dict[int, list[Score]] = {}
    for one in repetitions:
        for score in one.scores:
            by_distance.setdefault(score.distance, []).append(score)
    return tuple(_error(distance, scores, arima.get(distance)) for distance, scores in sorted(by_distance.items()))


def _error(distance: int, scores: Sequence[Score], arima: float | None) -> ErrorAt:
    rmse, mae = np.array([[s.rmse, s.mae] for s in scores]).T
    covered = [s.coverage for s in scores if s.coverage is not None]
    return ErrorAt(
        distance=distance,
        rmse=float(rmse.mean()),
        rmse_spread=float(rmse.std(ddof=1)) if len(rmse) > 1 else 0.0,
        mae=float(mae.mean()),
        mae_spread=float(mae.std(ddof=1)) if len(mae) > 1 else 0.0,
        of_arima=None if arima is None else _ratio(float(rmse.mean()), arima),
        coverage=float(np.mean(covered)) if covered else None,
    )


def _ratio(one: float, other: float) -> float | None:
    """None where the other is nothing: no number tells how much worse that is."""
    return one / other if other > 0 else None
