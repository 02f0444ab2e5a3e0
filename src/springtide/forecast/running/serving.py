"""Trained models in use: what they say of a running application's sources, and when they are not to be listened to.

Models predict on their own intervals, often minutes; decisions are made more often. So rates are gathered until an interval of
the model's is over, then its mixture predicts (see `following`), and what it says stands until the next one is over.

Rules: nothing here waits. A model that is missing, damaged, too old, or has seen too little of the past says nothing, and why
is told in a few words; so is it when it has been worse than the last value lately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from springtide.errors import SpringtideError
from springtide.forecast.mixing.following import Following
from springtide.forecast.models.auto import Auto, members_together
from springtide.forecast.running.online import DISTANCES, OnlineForecaster
from springtide.forecast.trained import Trained, TrainedSeries
from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import Forecast

OLDEST_S = 7 * 86_400.0

_ROUNDING = 1e-9
_GAP = 3  # intervals that may lie between the data that models learnt from and a run that goes on from there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """The mixture of one source."""

    source: str
    series: TrainedSeries
    auto: Auto
    recent_per_s: FloatArray = field(default_factory=lambda: np.empty(0))


def served(trained: Trained, sources: Sequence[str], begins: datetime | None = None) -> tuple[list[Served], dict[str, str]]:
    """The mixtures of these sources, and why others have none.

    A run that begins right where the data of the models ended, at `begins`, goes on with their newest rates.
    """
    found, missing = [], {}
    for source in sources:
        try:
            series = _series_of(trained, source, alone=len(sources) == 1)
            model = trained.load(series.name, Auto.name)
            if not isinstance(model, Auto) or model.beginning is None:
                raise SpringtideError(f"{trained.folder}: the model of {series.name!r} is not one that blends; train it again")
            recent = trained.recent(series.name) if _goes_on(series, begins) else np.empty(0)
            found.append(Served(source=source, series=series, auto=model, recent_per_s=recent))
        except SpringtideError as error:
            missing[source] = str(error)
    return found, missing


def _series_of(trained: Trained, source: str, *, alone: bool) -> TrainedSeries:
    """The series that is named after a source, in a journal or elsewhere; the only one, for an only source."""
    for name in (source, f"source:{source}"):
        for series in trained.series:
            if series.name == name:
                return series
    if alone and len(trained.series) == 1:
        return trained.series[0]
    return trained.named(source)


def _goes_on(series: TrainedSeries, begins: datetime | None) -> bool:
    if begins is None:
        return False
    gap_s = (begins - datetime.fromisoformat(series.end)).total_seconds()
    return -_ROUNDING <= gap_s <= _GAP * series.interval_s


class ServedForecaster:
    """The online forecast, in which trained models have their say.

    `age_s` is how old the models are when the run begins; beyond `oldest_s` they are silent.
    """

    def __init__(self, interval_s: float, *, age_s: float = 0.0, oldest_s: float = OLDEST_S) -> None:
        self._online = OnlineForecaster(interval_s)
        self._interval_s = interval_s
        self._age_s, self._oldest_s = age_s, oldest_s
        self._since_s: float | None = None
        self._groups: list[_Group] = []
        self._missing: dict[str, str] = {}
        self._everyone = "no models have been trained yet"
        self._problem = ""

    def use(self, found: Sequence[Served], missing: dict[str, str], *, age_s: float = 0.0) -> None:
        """Listen to these models from now on. What sources have shown so far is kept."""
        seen = {name: (group.rates_of(name), group) for group in self._groups for name in group.sources}
        together: dict[tuple[float, int, int], list[Served]] = {}
        for one in found:
            together.setdefault((one.series.interval_s, one.series.past, one.series.future), []).append(one)
        self._groups = [_Group(those, self._interval_s) for those in together.values()]
        for group in self._groups:
            group.take_over(seen)
        self._missing, self._age_s, self._since_s = dict(missing), age_s, None
        self._everyone = self._problem = ""

    def note_problem(self, problem: str) -> None:
        """Newer models could not be had: those that there are go on, and every forecast tells so until new ones come."""
        self._problem = problem

    def refuse(self, why: str) -> None:
        """There are no models at all, and this is why."""
        self._groups, self._missing, self._everyone = [], {}, why

    def __call__(self, observation: Observation) -> Forecast | None:
        if self._since_s is None:
            self._since_s = observation.start_s
        sources = list(observation.source_rows)
        rows = {name: i for i, name in enumerate(sources)}
        said = np.full((len(sources), len(DISTANCES)), np.nan)
        why = {name: self._missing.get(name, self._everyone or "there is no model of it") for name in sources}
        age_s = self._age_s + observation.end_s - self._since_s
        for group in self._groups:
            ahead = group.after(observation)
            for i, name in enumerate(group.sources):
                if name in rows:
                    why[name] = group.silence(i) or _too_old(age_s, self._oldest_s)
                    if not why[name]:
                        said[rows[name]] = ahead[i]
        forecast = self._online.told(observation, said)
        return self._explained(forecast, sources, why)

    def _explained(self, forecast: Forecast, sources: Sequence[str], why: dict[str, str]) -> Forecast:
        used = self._online.uses_trained.sum(axis=1) > 0
        share = self._online.trained_share_of_last_value
        for i, name in enumerate(sources):
            if not why[name] and not used[i]:
                why[name] = _outdone(float(share[i]))
        silent = [name for name in sources if why[name]]
        if not silent:
            return replace(forecast, model=Auto.name, note=self._problem)
        of = (
            ""
            if len(sources) == 1
            else f" of {len(silent)} of {len(sources)} sources"
            if len(silent) > 1
            else f" of {silent[0]}"
        )
        note = f"the trained model{of} is not used: {why[silent[0]]}" + (f"; {self._problem}" if self._problem else "")
        return replace(forecast, model=Auto.name if len(silent) < len(sources) else forecast.model, note=note)


def _long(duration_s: float) -> str:
    """
    >>> _long(90.0), _long(5400.0), _long(604_800.0)
    ('1.5 min', '1.5 h', '168 h')
    """
    return f"{duration_s / 60:.3g} min" if duration_s < 3600 else f"{duration_s / 3600:.3g} h"


def _too_old(age_s: float, oldest_s: float) -> str:
    if age_s <= oldest_s:
        return ""
    return f"it is {age_s / 86_400:.1f} d old, and {oldest_s / 86_400:g} d are the most"


def _outdone(share: float) -> str:
    if not math.isfinite(share):
        return "nothing that it said has come out yet"
    if share > 1.0:
        return f"it has been worse than the last value lately ({share:.2f} x its errors)"
    return "a simpler one has been better lately"


class _Group:
    """Sources whose models have windows of the same size."""

    def __init__(self, those: Sequence[Served], control_s: float) -> None:
        self.sources = [one.source for one in those]
        self._control_s = control_s
        self._interval_s = float(those[0].series.interval_s)
        self._past = those[0].series.past
        wanted = math.ceil((int(DISTANCES[-1]) * control_s) / self._interval_s) + 1
        self._steps = min(wanted, those[0].series.future)
        self._low = np.array([one.series.scale.low_per_s for one in those])
        self._span = np.array([one.series.scale.span_per_s for one in those])
        self._kept = np.zeros((len(those), 2 * self._past))
        self._end = self._past  # of the newest rates in what is kept
        self._seen = np.zeros(len(those), np.int64)
        for i, one in enumerate(those):
            newest = one.recent_per_s[-self._past :]
            if newest.size:
                self._recent[i, -len(newest) :] = (newest - self._low[i]) / self._span[i]
                self._seen[i] = len(newest)
        self._predict = members_together([one.auto.members for one in those])
        self._following = Following([one.auto.known for one in those], self._steps, quantiles=False)
        self._index = 0
        self._elapsed_s = 0.0
        self._rows = np.zeros(len(those))
        self._ahead = np.full((len(those), self._steps), np.nan)  # rows per second, from the last whole interval on

    @property
    def _recent(self) -> FloatArray:
        """The newest rates, scaled: as many as the models look back on."""
        newest: FloatArray = self._kept[:, self._end - self._past : self._end]
        return newest

    def rates_of(self, source: str) -> FloatArray:
        """What has been seen of a source, in rows per second, the oldest first."""
        i = self.sources.index(source)
        seen = min(int(self._seen[i]), self._past)
        rates: FloatArray = self._low[i] + self._recent[i, self._past - seen :] * self._span[i]
        return rates

    def take_over(self, seen: dict[str, tuple[FloatArray, _Group]]) -> None:
        """Go on from what earlier models saw of the same sources on intervals of the same length."""
        for i, source in enumerate(self.sources):
            rates, before = seen.get(source, (np.empty(0), None))
            if before is not None and before._interval_s == self._interval_s and len(rates) > self._seen[i]:
                newest = rates[-self._past :]
                self._recent[i, -len(newest) :] = (newest - self._low[i]) / self._span[i]
                self._seen[i] = len(newest)
                self._rows[i] = before._rows[before.sources.index(source)]
                self._elapsed_s = before._elapsed_s

    def after(self, observation: Observation) -> FloatArray:
        """What is said of the rates at each of `DISTANCES` after this observation; NaN while nothing is."""
        rates = np.array([observation.source_rows.get(name, 0.0) for name in self.sources]) / observation.interval_s
        left_s, closed = observation.interval_s, False
        while left_s > _ROUNDING * self._interval_s:
            taken_s = min(left_s, self._interval_s - self._elapsed_s)
            self._rows += rates * taken_s
            self._elapsed_s += taken_s
            left_s -= taken_s
            if self._interval_s - self._elapsed_s <= _ROUNDING * self._interval_s:
                self._close()
                closed = True
        if closed:
            self._say()
        middle_s = self._elapsed_s + (DISTANCES - 0.5) * self._control_s
        steps = np.minimum((middle_s / self._interval_s).astype(np.int64), self._steps - 1)
        ahead: FloatArray = self._ahead[:, steps]
        return ahead

    def silence(self, i: int) -> str:
        """Why nothing is said of a source; empty if something is."""
        if self._seen[i] >= self._past:
            return "" if np.isfinite(self._ahead[i, 0]) else "its first interval is not over yet"
        needed_s, there_s = self._past * self._interval_s, float(self._seen[i]) * self._interval_s
        return f"it needs {_long(needed_s)} of past rates, and has {_long(there_s)}"

    def _close(self) -> None:
        scaled = (self._rows / self._interval_s - self._low) / self._span
        if self._end == self._kept.shape[1]:  # room for as many again, so that rates are seldom moved
            self._kept[:, : self._past] = self._recent
            self._end = self._past
        self._kept[:, self._end] = scaled
        self._end += 1
        self._seen += 1
        self._index += 1
        self._following.came(self._index, scaled)
        self._rows = np.zeros_like(self._rows)
        self._elapsed_s = 0.0

    def _say(self) -> None:
        ready = self._seen >= self._past
        if not ready.any():
            return
        foreseen = self._following.says(self._predict(self._recent, self._steps), self._recent[:, -1])
        rates = np.maximum(0.0, self._low[:, None] + foreseen.mean * self._span[:, None])
        self._ahead = np.where(ready[:, None], rates, np.nan)
