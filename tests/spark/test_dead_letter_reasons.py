"""Why a row was set aside, or a query ended, in the one line that its user can do something with."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from springtide.backends.spark.dead_letters import reason

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 3540, in main
    process()
  File "/home/user/clicks.py", line 12, in city_of
    raise ValueError(f"no such city: {name}")
ValueError: no such city: Springfield
"""

STACK = """
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat org.apache.spark.scheduler.Task.run(Task.scala:141)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


class Captured(StreamingQueryException):
    """An error from the JVM that is not one of Spark's own kind: it has no message, and its text is all there is."""

    def getMessage(self) -> str:
        return ""

    def __str__(self) -> str:
        return self._message


def test_a_python_exception_is_named_with_what_it_said() -> None:
    assert reason(ValueError("no such city")) == "ValueError: no such city"
    assert reason(KeyError("city")) == "KeyError: 'city'"


def test_of_many_lines_the_first_says_it() -> None:
    assert reason(ValueError("no such city\n  in row 7\n  of batch 3")) == "ValueError: no such city"


@pytest.mark.parametrize(
    "after",
    [
        "",
        STACK,
        f"{STACK}\nDriver stacktrace:{STACK}",
        f"{STACK}Caused by: org.apache.spark.SparkException: Task failed{STACK}\t... 1 more",
    ],
)
def test_of_a_workers_traceback_the_last_line_says_it(after: str) -> None:
    assert reason(PySparkException(message=WORKER + after)) == "ValueError: no such city: Springfield"


def test_of_two_exceptions_the_one_that_was_not_handled_counts() -> None:
    chained = WORKER.replace(
        "ValueError: no such city: Springfield",
        "KeyError: 'Springfield'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/home/user/clicks.py", line 14, in city_of\n'
        "ValueError: no such city: Springfield",
    )

    assert reason(PySparkException(message=chained)) == "ValueError: no such city: Springfield"


def test_an_exception_from_a_library_keeps_the_name_of_its_module() -> None:
    text = WORKER.replace("ValueError: no such city: Springfield", "geo.errors.UnknownCity: Springfield")

    assert reason(PySparkException(message=text)) == "geo.errors.UnknownCity: Springfield"


def test_an_exception_that_says_nothing_is_its_name() -> None:
    text = WORKER.replace("ValueError: no such city: Springfield", "AssertionError")

    assert reason(PySparkException(message=text)) == "AssertionError"


def test_an_error_of_sparks_own_is_its_message() -> None:
    error = PySparkException(message="The value 'x' cannot be cast to INT. SQLSTATE: 22018", errorClass="CAST_INVALID_INPUT")

    assert reason(error) == "[CAST_INVALID_INPUT] The value 'x' cannot be cast to INT. SQLSTATE: 22018"


def test_an_error_without_a_message_is_what_the_jvm_called_it() -> None:
    text = f'For input string: "x"\n\nJVM stacktrace:\njava.lang.NumberFormatException: For input string: "x"{STACK}'

    assert reason(Captured(message=text)) == 'java.lang.NumberFormatException: For input string: "x"'


def test_an_error_that_says_nothing_at_all_is_its_kind() -> None:
    assert reason(Captured(message="")) == "Captured"


@pytest.mark.parametrize("error", [ValueError("a\nb"), PySparkException(message=WORKER + STACK), Captured(message="a\nb\nc")])
def test_a_reason_is_one_line(error: Exception) -> None:
    assert len(reason(error).splitlines()) == 1


QUERY = """
=== Streaming Query ===
Identifier: count [id = 6b2f6f3e-7c52-4a35-9f5e-0f5d6e0d3f11, runId = 0b5f2d58-27ce-4f43-8a0b-d44a6a1e6c0e]
Current Committed Offsets: {PythonMicroBatchStream: {"edge": "parse", "entry": 2}}
Current Available Offsets: {PythonMicroBatchStream: {"edge": "parse", "entry": 5}}

Current State: ACTIVE
Thread State: RUNNABLE
"""


def test_a_query_that_ended_outside_of_a_batch_says_why() -> None:
    """`StreamingQuery.exception()`: the cause's message, and behind it what the query was doing."""
    missing = "springtide.errors.SpringtideError: /runs/parse/edge: entry 3 is missing, though its reader has not committed it"
    text = WORKER.replace("ValueError: no such city: Springfield", missing) + QUERY

    assert reason(Captured(message=text)) == missing
