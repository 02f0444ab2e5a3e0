"""How models stand, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from springtide.forecast.standings import ErrorAt, SeriesStandings, Standing
from springtide.report.units import duration


def series_table(series: SeriesStandings) -> Table:
    """Every model on one series: RMSE and MAE at each distance and the share of ARIMA's, and the paper's beside them."""
    distances = sorted({error.distance for model in series.models for error in model.errors})
    stand_in = " (a stand-in: the paper's load was not published)" if series.load == "stable" else ""
    table = Table(title=f"{series.series}{stand_in}, intervals of {duration(series.interval_s)}", title_justify="left")
    table.add_column("model")
    for distance in distances:
        table.add_column(f"{distance:,} ahead", justify="right")
    if series.load is not None:
        table.add_column("paper", justify="right")
    for model in series.models:
        table.add_row(*_row(model, distances, with_paper=series.load is not None))
    whole = series.arima_from_one_origin
    if whole is not None:
        of_all = f"ARIMA, one forecast of all {whole.distance:,} intervals of the test part"
        table.caption = f"{of_all}: {whole.rmse:.3f} / {whole.mae:.3f}"
    return table


def _row(model: Standing, distances: Sequence[int], *, with_paper: bool) -> list[str]:
    errors = {error.distance: error for error in model.errors}
    cells = [f"{model.model} x {model.repetitions}" if model.repetitions > 1 else model.model]
    cells += [_cell(errors.get(distance), several=model.repetitions > 1) for distance in distances]
    return [*cells, _paper_cell(model)] if with_paper else cells


def _cell(error: ErrorAt | None, *, several: bool) -> str:
    if error is None:
        return "-"
    spreads = (f" ± {error.rmse_spread:.3f}", f" ± {error.mae_spread:.3f}") if several else ("", "")
    share = "" if error.of_arima is None else f" ({error.of_arima:.2f})"
    return f"{error.rmse:.3f}{spreads[0]} / {error.mae:.3f}{spreads[1]}{share}"


def _paper_cell(model: Standing) -> str:
    if model.paper is None:
        return "-"
    rmse, mae, of_arima = model.paper
    return f"{rmse:.3f} / {mae:.3f} ({of_arima:.2f})"


def verdict_table(all_series: Sequence[SeriesStandings]) -> Table:
    """The best single model of each series, and how the mixture does beside it."""
    table = Table("series", "intervals ahead", "best single model", "of ARIMA", "auto of the best", "auto's 90 % quantile held")
    for series in all_series:
        for verdict in series.verdicts:
            table.add_row(
                series.series,
                f"{verdict.distance:,}",
                verdict.best,
                "-" if verdict.of_arima is None else f"{verdict.of_arima:.2f}",
                "-" if verdict.auto_of_best is None else f"{verdict.auto_of_best:.3f}",
                "-" if verdict.auto_coverage is None else f"{100 * verdict.auto_coverage:.1f} %",
            )
    return table


def explanation() -> str:
    return (
        "Errors are RMSE / MAE in standard deviations of the training part, on the test part, after every interval of it; in "
        "brackets, RMSE as a share of ARIMA's; ± is the standard deviation over repetitions. The paper tells neither its "
        "distance nor its scale: only the shares compare."
    )
