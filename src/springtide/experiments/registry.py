"""The papers whose evaluations can be run again."""

from __future__ import annotations

from importlib import import_module

from springtide.errors import InvalidValue, nearest
from springtide.experiments.study import Study

PAPERS = ("heinze", "edf", "elasticutor", "psps", "bgelasor")


def study(name: str) -> Study:
    """The study of a paper, by its short name. Its module is imported when it is asked for."""
    if name not in PAPERS:
        raise InvalidValue(f"there is no paper {name!r}; {nearest(name, PAPERS)}")
    module = import_module(f"springtide.experiments.{name}")
    found: Study = module.STUDY
    return found
