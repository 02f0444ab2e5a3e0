"""What the page says of Table 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from springtide.experiments.bgelasor.learning import NEURAL_NAMES
from springtide.experiments.bgelasor.loads import LOADS, MADE_UP
from springtide.experiments.bgelasor.prediction import NAMES, shares, standings_on
from springtide.experiments.study import Claim, Finding, PageTable, Picture, Section
from springtide.forecast.standings import PAPER, ErrorAt, Standing

Standings = Mapping[str, Standing]

_TEXT = """
Every model learns from the first 40 days of a load, may look at the next 10, and is judged by the rest: after every interval it
foresees the next day. Errors are RMSE / MAE in standard deviations of the training days; in brackets, RMSE as a share of
ARIMA's. The paper tells neither its scale nor how far ahead it looks, so only these shares can be compared with its own.

`auto` is the mixture of models that learn in seconds (the last value, the same time a day and a week ago, ARIMA, boosted trees
on lags); it is what `tide` uses when it is given trained models.
"""

_SVR_KNOWS_THE_DAY = (
    "our SVR is given the usual rate of the time of day among its lags, so that it knows the day as the networks do; "
    "what the paper's SVR is given is not told"
)
_ARIMA_IS_NEAR = "what the last intervals tell is enough there, and ARIMA uses all of it"
_NETWORKS_ARE_ALIKE = "networks of the same size differ by about as much as repetitions of one of them do"
_SPIKES = (
    "spikes and shifts of level of the test days are in no model's past; what can be foreseen at these distances, ARIMA "
    "(its order found as auto.arima does) foresees too"
)
_STAND_IN = (
    "this load was not published, and what stands in for it is noise around a constant, of which nobody can foresee more"
)


def sections(findings: Sequence[Finding]) -> list[Section]:
    known = {load: standings_on(load, findings) for load in LOADS}
    judged = {load: models for load, models in known.items() if "arima" in models}
    claims = [
        *_less_than(judged, "periodic", "arima", _ARIMA_IS_NEAR),
        *_less_than(judged, "periodic", "svr", _SVR_KNOWS_THE_DAY),
        *_bigru_beside_arima(judged),
        *(claim for load in judged for claim in _bigru_is_best(load, judged[load])),
        *_auto_beside_bigru(judged),
    ]
    section = Section(
        title="Table 1: errors of forecasts",
        text="\n\n".join([_TEXT.strip(), *_notes(findings)]),
        tables=tuple(_table(load, models, findings) for load, models in judged.items()),
        pictures=(_picture(judged),) if judged else (),
        claims=tuple(claims),
    )
    return [section]


def _notes(findings: Sequence[Finding]) -> list[str]:
    notes = []
    made_up = {f.run.parameters["load"] for f in findings if f.found.get("origin") == MADE_UP}
    if "stable" in made_up:
        notes.append(
            "The stable load was not published. A constant with noise stands in for it (`generator:stable-stand-in`); errors "
            "on it say nothing of the paper's."
        )
    if made_up - {"stable"}:
        notes.append(f"**Made up, as the recordings are not at hand: {', '.join(sorted(made_up - {'stable'}))}.**")
    problems = sorted({f.found["problem"] for f in findings if "problem" in f.found})
    notes += [f"Left out: {problem}." for problem in problems]
    left = [load for load in LOADS if all(f.run.parameters["load"] != load for f in findings)]
    if left:
        notes.append(
            f"Not in the quick variant: the {', '.join(left)} load, SVR, LSTM and BiLSTM, GRU on the fluctuating load, "
            "and repetitions."
        )
    return notes


def _table(load: str, models: Standings, findings: Sequence[Finding]) -> PageTable:
    mine = [f for f in findings if f.run.parameters["load"] == load and "scores" in f.found]
    minutes = mine[0].found["interval_s"] / 60
    distances = [error.distance for error in models["arima"].errors]
    alone = next(f.found["from_one_origin"] for f in mine if "from_one_origin" in f.found)
    return PageTable(
        caption=f"{load.capitalize()} load ({mine[0].found['origin']}, intervals of {minutes:g} min). ARIMA, one forecast of "
        f"all {alone['distance']:,} intervals of the test days: {alone['rmse']:.3f} / {alone['mae']:.3f}",
        columns=("model", "paper", *(f"{distance} ahead" for distance in distances)),
        rows=tuple(
            (_named(standing), _of_paper(standing), *(_cell(error, standing.repetitions) for error in standing.errors))
            for standing in models.values()
        ),
    )


def _named(standing: Standing) -> str:
    times = f" x {standing.repetitions}" if standing.repetitions > 1 else ""
    return NAMES[standing.model] + (" (ours)" if standing.model == "auto" else "") + times


def _of_paper(standing: Standing) -> str:
    return "-" if standing.paper is None else "{:.3f} / {:.3f} ({:.2f})".format(*standing.paper)


def _cell(error: ErrorAt, repetitions: int) -> str:
    share = "-" if error.of_arima is None else f"{error.of_arima:.2f}"
    if repetitions == 1:
        return f"{error.rmse:.3f} / {error.mae:.3f} ({share})"
    return f"{error.rmse:.3f} ± {error.rmse_spread:.3f} / {error.mae:.3f} ± {error.mae_spread:.3f} ({share})"


def _picture(judged: Mapping[str, Standings]) -> Picture:
    def draw(path: Path) -> None:
        from springtide.experiments import drawing  # noqa: PLC0415 - matplotlib takes a second

        panels = []
        for load, models in judged.items():
            distances = _far(models)
            series = [(f"here, {d} ahead", [shares(models[name]).get(d, 0.0) for name in models]) for d in distances]
            paper = [PAPER[load][name][0] / PAPER[load]["arima"][0] if name in PAPER[load] else 0.0 for name in models]
            panels.append(
                drawing.Bars(
                    title=f"{load} load",
                    y_label="RMSE, share of ARIMA's",
                    groups=[NAMES[name] for name in models],
                    series=[("paper", paper), *series],
                    of_paper=frozenset({"paper"}),
                )
            )
        drawing.draw(panels, path)

    return Picture(name="table-1", shows="RMSE of each model as a share of ARIMA's, the paper's beside ours", draw=draw)


def _far(models: Standings) -> list[int]:
    """The distances that claims are judged at: all but the next interval, which is over before anything has started."""
    return [error.distance for error in models["arima"].errors if error.distance > 1]


def _at(models: Standings, name: str, distance: int) -> float:
    return next(error.rmse for error in models[name].errors if error.distance == distance)


def _less_than(judged: Mapping[str, Standings], load: str, other: str, why: str) -> list[Claim]:
    """The networks err less than a traditional model."""
    models = judged.get(load, {})
    networks = [name for name in NEURAL_NAMES if name in models]
    if not networks or other not in models:
        return []
    distances = _far(models)
    failing = [d for d in distances if max(_at(models, n, d) for n in networks) >= _at(models, other, d)]
    paper = [PAPER[load][name][0] for name in NEURAL_NAMES]
    return [
        Claim(
            says=f"{load} load: neural networks err less than {NAMES[other]}",
            paper=f"RMSE {min(paper):.2f} to {max(paper):.2f} against {PAPER[load][other][0]:.2f}",
            here="; ".join(
                f"{d} ahead {_between([_at(models, n, d) for n in networks])} against {_at(models, other, d):.3f}"
                for d in distances
            ),
            holds=not failing,
            why=f"not at {_listed(failing)} intervals: {why}" if failing else "",
        )
    ]


def _between(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"


def _listed(distances: Sequence[int]) -> str:
    return " and ".join(map(str, distances))


def _bigru_beside_arima(judged: Mapping[str, Standings]) -> list[Claim]:
    models = judged.get("fluctuating", {})
    if "bigru" not in models:
        return []
    distances = _far(models)
    failing = [d for d in distances if _at(models, "bigru", d) >= _at(models, "arima", d)]
    best = min(shares(models[name])[distances[0]] for name in models)
    paper = PAPER["fluctuating"]["bigru"][0] / PAPER["fluctuating"]["arima"][0]
    return [
        Claim(
            says="fluctuating load: BiGRU errs less than ARIMA",
            paper=f"{paper:.2f} of its RMSE",
            here="; ".join(f"{d} ahead {shares(models['bigru'])[d]:.2f}" for d in distances),
            holds=not failing,
            why=f"{_SPIKES}; the best model of this table has {best:.2f} at {distances[0]} intervals" if failing else "",
        )
    ]


def _bigru_is_best(load: str, models: Standings) -> list[Claim]:
    of_paper = [name for name in models if name in PAPER[load]]
    if "bigru" not in of_paper:
        return []
    distances = _far(models)
    best = {d: min(of_paper, key=lambda name: _at(models, name, d)) for d in distances}
    failing = [d for d in distances if best[d] != "bigru"]
    return [
        Claim(
            says=f"{load} load: BiGRU errs least of the paper's models",
            paper=f"RMSE {PAPER[load]['bigru'][0]:.3f}, the next {sorted(v[0] for v in PAPER[load].values())[1]:.3f}",
            here="; ".join(f"{d} ahead {_at(models, 'bigru', d):.3f}, {_best_other(models, of_paper, d)}" for d in distances),
            holds=not failing,
            why=f"{', '.join(f'{NAMES[best[d]]} at {d}' for d in failing)}: {_reasons(load, [best[d] for d in failing])}"
            if failing
            else "",
        )
    ]


def _reasons(load: str, winners: Sequence[str]) -> str:
    """Why these models err less than BiGRU on a load."""
    if load != "periodic":
        return _STAND_IN if load == "stable" else _SPIKES
    told = {"svr": _SVR_KNOWS_THE_DAY, "arima": _ARIMA_IS_NEAR}
    return "; ".join(dict.fromkeys(told.get(winner, _NETWORKS_ARE_ALIKE) for winner in winners))


def _best_other(models: Standings, names: Sequence[str], distance: int) -> str:
    others = [name for name in names if name != "bigru"]
    best = min(others, key=lambda name: _at(models, name, distance))
    return f"{NAMES[best]} {_at(models, best, distance):.3f}"


def _arima(judged: Mapping[str, Standings]) -> str:
    return ", ".join(
        f"{_at(models, 'arima', d):.3f} ({load}, {d} ahead)" for load, models in judged.items() for d in _far(models)
    )


def _auto_beside_bigru(judged: Mapping[str, Standings]) -> list[Claim]:
    there = {load: models for load, models in judged.items() if {"auto", "bigru"} <= set(models) and load != "stable"}
    if not there:
        return []
    figures, failing = [], []
    for load, models in there.items():
        for d in _far(models):
            mine, theirs = _at(models, "auto", d), _at(models, "bigru", d)
            figures.append(f"{load}, {d} ahead {mine:.3f} against {theirs:.3f}")
            if mine > theirs:
                failing.append(f"{load} at {d}")
    return [
        Claim(
            says="the mixture that tide can use errs less than BiGRU",
            paper="-",
            here="; ".join(figures),
            holds=not failing,
            why=f"not on {', '.join(failing)}: its weights come from days before, and what erred least then does not now; "
            f"ARIMA, one of its members, errs by {_arima(there)}"
            if failing
            else "",
            ours=True,
        )
    ]
