"""The papers whose evaluations can be run again, and those of them that have a study on real Spark besides."""

from __future__ import annotations

from importlib import import_module

from springtide.errors import InvalidValue, nearest
from springtide.experiments.study import Study

PAPERS = ("heinze", "edf", "elasticutor", "psps", "bgelasor")
LIVE = {"elasticutor": "elasticutor-live"}  # by paper, the study of its live runs


def study(name: str) -> Study:
    """The study of a paper, by its short name, or that of its live runs. Its module is imported when it is asked for."""
    if name not in PAPERS and name not in LIVE.values():
        raise InvalidValue(f"there is no paper {name!r}; {nearest(name, (*PAPERS, *LIVE.values()))}")
    module = import_module(f"springtide.experiments.{name if name in PAPERS else name.replace('-', '_')}")
    found: Study = module.STUDY
    return found
