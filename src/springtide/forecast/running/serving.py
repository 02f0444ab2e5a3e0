"""Trained models in use: what they say of a running application's sources, and when they are not to be listened to.

Models predict on their own intervals, often minutes; decisions are made more often. So rates are gathered until an interval of
the model's is over, then its mixture predicts (see `following`), and what it says stands until the next one is over. Of very
many sources only some predict with each decision, those first that have waited longest: a decision must not be late. What the
others said before still holds, only that it was said a few intervals ago.

Rules: nothing here waits. A model that is missing, damaged, too old, or has seen too little of the past says nothing, and why
is told in a few words; so is it when it has been worse than the last value lately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from springtide.errors import SpringtideError
from springtide.forecast.mixing.following import Following
from springtide.forecast.models.auto import Auto, members_together
from springtide.forecast.running.online import OnlineForecaster, distances_of
from springtide.forecast.trained import Trained, TrainedSeries
from springtide.model.observation import FloatArray, Observation
from springtide.model.protocols import Forecast

OLDEST_S = 7 * 86_400.0

_ROUNDING = 1e-9
_GAP = 3  # intervals that may lie between the data that models learnt from and a run that goes on from there
_AT_ONCE = 200  # sources whose models predict with one decision


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
        chunks = [those[i : i + _AT_ONCE] for those in together.values() for i in range(0, len(those), _AT_ONCE)]
        self._groups = [_Group(those, self._interval_s, turns=len(chunks)) for those in chunks]
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
        said = np.full((len(sources), len(self._online.distances)), np.nan)
        too_old = _too_old(self._age_s + observation.end_s - self._since_s, self._oldest_s)
        why: dict[str, str] = {}
        for group in self._groups:
            group.take_in(observation)
        self._let_say()
        for group in self._groups:
            places = np.array([rows.get(name, -1) for name in group.sources])
            if not too_old:
                here = np.flatnonzero(places >= 0)
                said[places[here]] = group.ahead()[here]
            why.update(group.silent())
        speaking = np.isfinite(said[:, 0])
        for i in np.flatnonzero(~speaking).tolist():
            name = sources[i]
            why[name] = why.get(name) or self._why_none(name) or too_old
        forecast = self._online.told(observation, said)
        return self._explained(forecast, sources, speaking, why)

    def _why_none(self, source: str) -> str:
        if any(source in group.sources for group in self._groups):
            return ""
        return self._missing.get(source, self._everyone or "there is no model of it")

    def _let_say(self) -> None:
        """Those that have waited longest, as many as one decision has time for, and at least one."""
        left = _AT_ONCE
        for group in sorted((group for group in self._groups if group.waits), key=lambda group: group.said_at):
            if left < _AT_ONCE and len(group.sources) > left:
                return
            group.say()
            left -= len(group.sources)

    def _explained(
        self, forecast: Forecast, sources: Sequence[str], speaking: NDArray[np.bool_], why: dict[str, str]
    ) -> Forecast:
        used = self._online.uses_trained.any(axis=1)
        silent = np.flatnonzero(~(speaking & used)).tolist()
        if not silent:
            return replace(forecast, model=Auto.name, note=self._problem)
        first = silent[0]
        reason = _outdone(float(self._online.trained_share_of_last_value[first])) if speaking[first] else why[sources[first]]
        of = (
            ""
            if len(sources) == 1
            else f" of {len(silent)} of {len(sources)} sources"
            if len(silent) > 1
            else f" of {sources[first]}"
        )
        note = f"the trained model{of} is not used: {reason}" + (f"; {self._problem}" if self._problem else "")
        return replace(forecast, model=Auto.name if len(silent) < len(sources) else forecast.model, note=note)


def _long(duration_s: float) -> str:
    """
    >>> _long(8.0), _long(90.0), _long(5400.0), _long(604_800.0)
    ('8 s', '1.5 min', '1.5 h', '168 h')
    """
    if duration_s < 60:
        return f"{duration_s:.3g} s"
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
    """Sources whose models have windows of the same size, and predict together, when it is their turn."""

    def __init__(self, those: Sequence[Served], control_s: float, *, turns: int = 1) -> None:
        self.sources = [one.source for one in those]
        self._control_s = control_s
        self._distances = distances_of(control_s)
        self._interval_s = float(those[0].series.interval_s)
        self._past = those[0].series.past
        wanted = math.ceil((int(self._distances[-1]) * control_s) / self._interval_s) + turns
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
        self.waits = False  # for its turn to say something new
        self.said_at = 0  # the interval after which it last did
        self._ahead = np.full((len(those), self._steps), np.nan)  # rows per second, from that interval on

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

    def take_in(self, observation: Observation) -> None:
        """Rates that have come. Once an interval of the models' is over with them, there is something new to say."""
        rates = np.array([observation.source_rows.get(name, 0.0) for name in self.sources]) / observation.interval_s
        left_s = observation.interval_s
        while left_s > _ROUNDING * self._interval_s:
            taken_s = min(left_s, self._interval_s - self._elapsed_s)
            self._rows += rates * taken_s
            self._elapsed_s += taken_s
            left_s -= taken_s
            if self._interval_s - self._elapsed_s <= _ROUNDING * self._interval_s:
                self._close()
                self.waits = bool((self._seen >= self._past).any())

    def say(self) -> None:
        """Predict, from the last whole interval on."""
        ready = self._seen >= self._past
        foreseen = self._following.says(self._predict(self._recent, self._steps))
        rates = np.maximum(0.0, self._low[:, None] + foreseen.mean * self._span[:, None])
        self._ahead = np.where(ready[:, None], rates, np.nan)
        self.waits, self.said_at = False, self._index

    def ahead(self) -> FloatArray:
        """What is said of the rates at each distance (`distances_of`) after the newest observation; NaN while nothing is."""
        since_s = (self._index - self.said_at) * self._interval_s + self._elapsed_s
        middle_s = since_s + (self._distances - 0.5) * self._control_s
        steps = np.minimum((middle_s / self._interval_s).astype(np.int64), self._steps - 1)
        found: FloatArray = self._ahead[:, steps]
        return found

    def silent(self) -> dict[str, str]:
        """The sources of which nothing is said, and why."""
        found = {}
        for i in np.flatnonzero(np.isnan(self._ahead[:, 0])).tolist():
            if self._seen[i] >= self._past:
                found[self.sources[i]] = "its first interval is not over yet"
            else:
                needed_s, there_s = self._past * self._interval_s, float(self._seen[i]) * self._interval_s
                found[self.sources[i]] = f"it needs {_long(needed_s)} of past rates, and has {_long(there_s)}"
        return found

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
