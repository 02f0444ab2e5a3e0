"""Which forecast a policy gets: none if it does not look ahead; else one that learns, with models if there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from springtide.errors import SpringtideError, require
from springtide.forecast.running.online import OnlineForecaster
from springtide.loop import no_forecast
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Forecast
from springtide.plan.parameters import wants

ForecastOf = Callable[[Observation], Forecast | None]

# Those that learn in seconds: others take minutes of a core that the application may need.
QUICK_MODELS = "last-value,yesterday,last-week,arima,boosted-lags,auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Trained models to use: those in `folder`, and, if `retrain_s` is given, new ones as often, from the run's journal."""

    folder: Path
    retrain_s: float | None = None
    retrained: str = QUICK_MODELS

    def __post_init__(self) -> None:
        require(self.retrain_s is None or self.retrain_s > 0, f"retrain_s must be above 0, not {self.retrain_s}")


@contextmanager
def forecast_for(
    policy: AnyPolicy,
    interval_s: float,
    *,
    models: Models | None = None,
    sources: Sequence[str] = (),
    journal: Path | None = None,
    begins: datetime | None = None,
) -> Iterator[ForecastOf]:
    """What tells the policy of the future, from what has been observed.

    `begins` is when a run over recorded data begins, whose models are as old as it has lasted; a live run has none.
    """
    if not wants(policy, "looks_ahead"):
        yield no_forecast
    elif models is None:
        yield OnlineForecaster(interval_s)
    else:
        with _served(models, interval_s, sources, journal, begins) as forecast:
            yield forecast


@contextmanager
def _served(
    models: Models, interval_s: float, sources: Sequence[str], journal: Path | None, begins: datetime | None
) -> Iterator[ForecastOf]:
    # What reads models takes a second to import, which a run without them need not wait for.
    from springtide.forecast.running.retraining import Retraining, retraining_command  # noqa: PLC0415
    from springtide.forecast.running.serving import ServedForecaster, served  # noqa: PLC0415
    from springtide.forecast.trained import open_trained  # noqa: PLC0415

    forecaster = ServedForecaster(interval_s)
    try:
        trained = open_trained(models.folder)
    except SpringtideError as error:
        if models.retrain_s is None:
            raise
        forecaster.refuse(str(error))
    else:
        now = datetime.now(UTC) if begins is None else begins
        age_s = (now - datetime.fromisoformat(trained.at)).total_seconds() if begins is None else 0.0
        forecaster.use(*served(trained, sources, now), age_s=age_s)
    if models.retrain_s is None:
        yield forecaster
        return
    if journal is None:
        raise SpringtideError("models are trained anew from the journal of the run: name one with --journal")
    retraining = Retraining(
        models.folder, retraining_command(journal, models.folder, models.retrained), sources, models.retrain_s
    )

    def forecast(observation: Observation) -> Forecast | None:
        retrained = retraining.look(observation.end_s)
        if retrained is not None and retrained.loaded is not None:
            forecaster.use(*retrained.loaded)
        elif retrained is not None:
            forecaster.note_problem(retrained.problem)
        return forecaster(observation)

    try:
        yield forecast
    finally:
        retraining.close()
