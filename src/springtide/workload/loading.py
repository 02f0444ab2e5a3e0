"""A trace from what a user writes for one: the path of a file, or `generator:NAME[:PARAMETER=VALUE,...]`."""

from __future__ import annotations

from pathlib import Path

from springtide.errors import InvalidValue
from springtide.workload.generators import GENERATORS, generate
from springtide.workload.traces import Trace

_GENERATOR = "generator:"


def load(
    spec: str,
    *,
    seed: int,
    time_column: str | None = None,
    count_column: str | None = None,
    rate_column: str | None = None,
) -> Trace:
    """The trace that `spec` stands for. `seed` is for generators, the columns are for files."""
    if spec.startswith(_GENERATOR):
        return generate(spec.removeprefix(_GENERATOR), seed)
    if spec.partition(":")[0] in GENERATORS and not Path(spec).exists():
        raise InvalidValue(f"{spec}: there is no such file; for the generator of that name write {_GENERATOR}{spec}")
    # Arrow takes a quarter of a second to import, which a generator does not need.
    from springtide.workload.reading import read_trace  # noqa: PLC0415

    return read_trace(spec, time_column=time_column, count_column=count_column, rate_column=rate_column)
