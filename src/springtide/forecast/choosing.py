"""Which forecast a policy gets while it runs: one that learns if it looks ahead, none if it does not."""

from __future__ import annotations

from collections.abc import Callable

from springtide.forecast.online import OnlineForecaster
from springtide.loop import no_forecast
from springtide.model.observation import Observation
from springtide.model.protocols import AnyPolicy, Forecast
from springtide.plan.parameters import wants


def forecast_for(policy: AnyPolicy, interval_s: float) -> Callable[[Observation], Forecast | None]:
    """What tells the policy of the future, from what has been observed."""
    return OnlineForecaster(interval_s) if wants(policy, "looks_ahead") else no_forecast
