"""Did a decision do what it promised? Each expectation beside what the next interval showed."""

from __future__ import annotations

from springtide.model.decision import Expectation, Outcome
from springtide.model.observation import Observation

# A promise counts as kept within this share of the promised value: a policy forecasts, it does not know.
TOLERANCE = 0.25
UTILISATION_TOLERANCE = 0.1  # a utilisation is a share already: from 0.8 to 1.0 is not a small miss
NOTHING_PROMISED = "nothing was promised"


def compare(expected: Expectation, after: Observation) -> Outcome:
    """The outcome of the decision taken at the start of the interval that `after` observes."""
    measured = Expectation(
        utilisation=max((h.utilisation for h in after.running_hosts), default=0.0),
        processed_rows_per_s=after.latency.rows / after.interval_s,
        latency_s=after.latency.slo_s if after.latency.rows > 0 else None,
    )
    misses = [text for text in _misses(expected, measured) if text]
    kept = NOTHING_PROMISED if expected == Expectation() else "as expected"
    return Outcome(interval=after.index, expected=expected, measured=measured, verdict="; ".join(misses) or kept)


def _misses(expected: Expectation, measured: Expectation) -> list[str]:
    pairs = [
        ("busiest host", expected.utilisation, measured.utilisation, ""),
        ("rows leaving", expected.processed_rows_per_s, measured.processed_rows_per_s, " rows/s"),
        ("latency", expected.latency_s, measured.latency_s, " s"),
    ]
    return [_miss(what, promised, was, unit) for what, promised, was, unit in pairs]


def _miss(what: str, promised: float | None, was: float | None, unit: str) -> str:
    if promised is None:
        return ""
    if was is None:
        return f"{what} unknown instead of {promised:.3g}{unit}: no row left"
    allowed = UTILISATION_TOLERANCE if unit == "" else TOLERANCE * abs(promised)
    if abs(was - promised) <= allowed:
        return ""
    return f"{what} {was:.3g}{unit} instead of {promised:.3g}{unit}"
