"""What an error is told as, in one line."""

from __future__ import annotations

from springtide.doctor.finding import first_line


class _Raised:
    def toString(self) -> str:  # as py4j calls it
        return "java.lang.IllegalStateException: the last batch is not committed\n\tat Checkpoint.java:1"


class _CallFailed(Exception):
    java_exception = _Raised()


def test_an_error_of_java_is_told_in_the_words_of_java() -> None:
    told = first_line(_CallFailed("An error occurred while calling o1094.repartition."))
    assert told == "_CallFailed: java.lang.IllegalStateException: the last batch is not committed"


def test_an_error_of_python_is_told_by_its_first_line() -> None:
    assert first_line(ValueError("one\ntwo")) == "ValueError: one"
