"""What may be chosen about the preparation of data; whatever is not chosen is found by looking at the data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from springtide.errors import require
from springtide.forecast.pipeline.parts import split_of

Kind = Literal["rates", "events", "journal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOptions:
    """Durations are in seconds, because each series may have an interval of its own where `interval_s` is not given.

    `split` is text such as "40d/10d/10d" (days) or "4/1/1" (shares). `refit` begins anew: other settings than before, new
    boundaries and a new scale; what has been counted of the inputs is kept.
    """

    interval_s: float | None = None
    past_s: float | None = None
    future_s: float | None = None
    split: str | None = None
    most_windows: int = 4_000
    kind: Kind | None = None
    time_column: str | None = None
    count_column: str | None = None
    rate_column: str | None = None
    series_column: str | None = None
    refit: bool = False

    def __post_init__(self) -> None:
        for name in ("interval_s", "past_s", "future_s"):
            duration_s = getattr(self, name)
            require(
                duration_s is None or (duration_s >= 1 and duration_s == int(duration_s)),
                f"{name} must be a whole number of seconds, not {duration_s}",
            )
        require(self.most_windows >= 1, f"most_windows must be at least 1, not {self.most_windows}")
        require(self.count_column is None or self.rate_column is None, "give a count column or a rate column, not both")
        if self.split is not None:
            split_of(self.split)

    def differences(self, other: PrepareOptions) -> list[str]:
        """What was chosen otherwise there, one line each; `refit` is no setting but a wish."""
        return [
            f"{field.name} is {getattr(self, field.name)} and was {getattr(other, field.name)}"
            for field in fields(self)
            if field.name != "refit" and getattr(self, field.name) != getattr(other, field.name)
        ]

    def settings(self) -> PrepareOptions:
        return replace(self, refit=False)
