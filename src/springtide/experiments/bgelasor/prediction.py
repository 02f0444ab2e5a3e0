"""Table 1: errors of six models on three loads, and of the mixture that `tide` can use.

The paper tells neither how far ahead its models look nor on what scale errors are, so errors are compared as shares of
ARIMA's, at the distances at which forecasts are always judged: 1 and 12 intervals, and a day.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from springtide.errors import SpringtideError
from springtide.experiments.bgelasor.learning import NEURAL_NAMES, can_learn, learnt
from springtide.experiments.bgelasor.loads import LOADS, SERIES, load_named
from springtide.experiments.study import Finding, Values
from springtide.forecast.evaluation import Score, judge, judge_from_one_origin, judged_at
from springtide.forecast.models.arima import Arima
from springtide.forecast.standings import Judged, Standing, standings

NAMES = {
    "arima": "ARIMA",
    "svr": "SVR",
    "lstm": "LSTM",
    "gru": "GRU",
    "bilstm": "BiLSTM",
    "bigru": "BiGRU",
    "auto": "auto",
}
REPETITIONS = 5  # of networks; the paper has 10

_QUICK_MODELS = {"periodic": ("arima", "gru", "bigru", "auto"), "fluctuating": ("arima", "bigru", "auto")}


def runs(quick: bool) -> list[tuple[Values, int]]:
    if quick:
        return [({"load": load, "model": model}, 0) for load, models in _QUICK_MODELS.items() for model in models]
    return [
        ({"load": load, "model": model}, seed)
        for load in LOADS
        for model in NAMES
        for seed in range(REPETITIONS if model in NEURAL_NAMES else 1)
    ]


def run(parameters: Values, seed: int) -> tuple[Values, Values]:
    """The errors of one model that has learnt from one load; without JAX, why a network has none."""
    name = parameters["model"]
    load = load_named(parameters["load"])
    if not can_learn(name):
        return {"problem": f"{NAMES[name]} needs jax and optax: pip install 'springtide[neural]'"}, {}
    began_s = time.perf_counter()
    try:
        model = learnt(load, name, seed)
    except SpringtideError as error:
        return {"problem": str(error)}, {}
    trained_s = time.perf_counter()
    test = load.windows("test")
    scores = judge(model, test, load.scale, judged_at(load.lengths.future))
    found = {"origin": load.origin, "interval_s": load.interval_s, "scores": msgspec.to_builtins(scores)}
    if name == Arima.name:
        found["from_one_origin"] = msgspec.to_builtins(judge_from_one_origin(model, test, load.scale))
    return found, {"learning_s": trained_s - began_s, "judging_s": time.perf_counter() - trained_s}


def standings_on(load: str, findings: Sequence[Finding]) -> dict[str, Standing]:
    """Every model that was judged on a load, by name, in the paper's order."""
    judged = [
        Judged(
            series=SERIES[load],
            model=finding.run.parameters["model"],
            repetition=finding.run.seed,
            scores=tuple(msgspec.convert(finding.found["scores"], list[Score])),
        )
        for finding in findings
        if finding.run.parameters["load"] == load and "scores" in finding.found
    ]
    found = {one.model: one for one in standings(SERIES[load], judged, {})}
    return {name: found[name] for name in NAMES if name in found}


def shares(standing: Standing) -> dict[int, float]:
    """The model's RMSE as a share of ARIMA's, by distance."""
    return {error.distance: error.of_arima for error in standing.errors if error.of_arima is not None}
