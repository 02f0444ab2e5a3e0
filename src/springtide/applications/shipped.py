"""What an application that comes with Springtide is: options, operators, and an exact check of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from springtide import Application


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An answer beside the right one: `rows` of those, of which `wrong` are missing, different or too many.

    `first_wrong` shows the first of them to people. Without `exact` nothing is compared: it is told for information.
    """

    what: str
    rows: int
    wrong: int
    first_wrong: str = ""
    exact: bool = True

    def __str__(self) -> str:
        """
        >>> print(Checked(what="trades", rows=18_139, wrong=0))
        18,139 trades, all as they must be
        >>> print(Checked(what="tunnels found", rows=49, wrong=0, exact=False))
        49 tunnels found
        """
        if not self.exact:
            return f"{self.rows:,} {self.what}"
        if not self.wrong:
            return f"{self.rows:,} {self.what}, all as they must be"
        return f"{self.rows:,} {self.what}, of which {self.wrong:,} are wrong; the first: {self.first_wrong}"


class ShippedApplication(Protocol):
    """A frozen dataclass whose fields are the options of the application.

    Its stream has an end. Recorded rows are kept under `folder`/rows, results under `folder`/results.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    reference: ClassVar[str]

    def data(self) -> str:
        """Which recording is used, or of which seed rows are made, in one line."""
        ...

    def application(self, folder: Path) -> Application: ...

    def check(self, spark: SparkSession, folder: Path) -> list[Checked]:
        """Once the stream has been read to its end: the results, beside a computation of its own."""
        ...

    @classmethod
    def small(cls) -> Self:
        """Options for a short run of a few thousand rows."""
        ...
