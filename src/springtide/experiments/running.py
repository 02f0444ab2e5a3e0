"""One run of an experiment, wherever it is done."""

from __future__ import annotations

import traceback

from springtide.experiments.registry import study
from springtide.experiments.study import Failure, Finding, Run

Outcome = Finding | Failure


def attempt(run: Run) -> Outcome:
    """Do the run; one that raises spoils nothing but itself."""
    try:
        found = study(run.paper).experiment(run.experiment).run(run.parameters, run.seed)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return Failure(run=run, error=what, traceback=traceback.format_exc())
    if isinstance(found, tuple):
        return Finding(run=run, found=found[0], measured=found[1])
    return Finding(run=run, found=found)
