"""The functions of the four operators.

What becomes of a row is its `outcome`, decided by the row alone, from the first that fits:

bad-fields        the line has not five fields with one space between them
bad-time          the time is not like 2020-04-01T00:00:12.345678Z
bad-client        the client is no IPv4 address
bad-name          the name has an empty or too long label, other characters than letters, digits, - and _, or no dot
bad-type          the type is not among those that are known
bad-bytes         the bytes are no whole number of up to nine digits
from-the-future   asked after the collector received it
too-late          received `allowed_lateness_s` or more after the end of the window in which it was asked
kept              everything else: it counts in the window in which it was asked

Rows may come in any order within these bounds. The same query twice is two queries: resolvers ask again. What is not kept
counts in the window in which it was received, by its outcome, so every row is counted once.

Watermarks only clear state. One lags behind the newest row by more than a row that is kept can: whatever batches come, Spark
finds no row too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from springtide.applications.dns.names import (
    DOUBLE_SUFFIXES,
    MAX_LABEL,
    MAX_NAME,
    digits,
    entropies_millibit,
    longest_labels,
)
from springtide.errors import require

BAD_FIELDS = "bad-fields"
BAD_TIME = "bad-time"
BAD_CLIENT = "bad-client"
BAD_NAME = "bad-name"
BAD_TYPE = "bad-type"
BAD_BYTES = "bad-bytes"
FROM_THE_FUTURE = "from-the-future"
TOO_LATE = "too-late"
KEPT = "kept"

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
ADDRESS = rf"^{_OCTET}(\.{_OCTET}){{3}}$"
_LABEL = f"[a-z0-9_-]{{1,{MAX_LABEL}}}"
NAME = rf"^{_LABEL}(\.{_LABEL})+$"
WHOLE = "^[0-9]{1,9}$"
TYPES = ("A", "AAAA", "CNAME", "HTTPS", "MX", "NS", "NULL", "PTR", "SOA", "SRV", "SVCB", "TXT")
DATA_TYPES = ("TXT", "NULL")  # responses of these carry whatever one likes

FEATURES_SCHEMA = (
    "at_us long, outcome string, client string, domain string, sub string, bytes long, data_type long, "
    "sub_chars long, sub_digits long, longest_label long, entropy_millibit long"
)


class Verdict(StrEnum):
    NORMAL = "normal"
    SUSPICIOUS = "suspicious"
    TUNNEL = "tunnel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Four signs of a tunnel, of the queries of a client for a domain in a window.

    Nearly every query asks for another subdomain, the subdomains look like data (entropy), they are long, and half of the
    queries are of types that carry data. Three signs and enough queries make a tunnel, two signs are suspicious.
    """

    min_queries: int = 8
    min_mean_entropy_millibit: int = 3300
    min_mean_sub_chars: int = 30
    min_distinct_percent: int = 80
    min_data_percent: int = 50

    def __post_init__(self) -> None:
        for what in (field.name for field in fields(self)):
            require(getattr(self, what) >= 1, f"{what} must be at least 1, not {getattr(self, what)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsOperators:
    """The operators with their options; a method is the function of one."""

    window_s: int
    allowed_lateness_s: float
    thresholds: Thresholds

    def __post_init__(self) -> None:
        require(self.window_s >= 1, f"window_s must be at least 1, not {self.window_s}")
        require(self.allowed_lateness_s >= 0, f"allowed_lateness_s must be 0 or more, not {self.allowed_lateness_s}")

    def parsed(self, rows: DataFrame) -> DataFrame:
        """Lines as columns, with their outcome. Times are microseconds since 1970, names lower-case."""
        split = rows.select(F.unix_micros("received_at").alias("received_us"), F.split("line", " ").alias("f"))
        asked = F.when(_field(0).rlike(TIME), F.unix_micros(F.try_to_timestamp(_field(0))))
        named = split.select("received_us", "f", asked.alias("asked_us"), F.lower(_field(2)).alias("name"))
        known = named.withColumn("outcome", self._outcome())
        fine = F.col("outcome") == KEPT
        return known.select(
            F.when(fine, F.col("asked_us")).otherwise(F.col("received_us")).alias("at_us"),
            "outcome",
            F.when(fine, _field(1)).otherwise("").alias("client"),
            F.when(fine, F.col("name")).otherwise("").alias("name"),
            F.when(fine, _field(3)).otherwise("").alias("type"),
            F.when(fine, _field(4).try_cast("long")).otherwise(0).alias("bytes"),
        )

    @staticmethod
    def features(queries: DataFrame) -> DataFrame:
        """The registered domain of each query, and what its name tells: see `names`."""
        labels = F.split("name", r"\.")
        last_two = F.array_join(F.slice("labels", -2, 2), ".")
        known = queries.withColumn("labels", labels).withColumn("count", F.size("labels"))
        double = (F.col("count") > 2) & last_two.isin(*DOUBLE_SUFFIXES)
        known = known.withColumn("depth", F.least(F.col("count"), F.when(double, 3).otherwise(2)))
        split = known.select(
            *("at_us", "outcome", "client"),
            F.array_join(F.slice("labels", F.col("count") - F.col("depth") + 1, F.col("depth")), ".").alias("domain"),
            F.array_join(F.slice("labels", 1, F.col("count") - F.col("depth")), ".").alias("sub"),
            "bytes",
            F.col("type").isin(*DATA_TYPES).cast("long").alias("data_type"),
        )
        return split.mapInArrow(_measured, FEATURES_SCHEMA)

    def windows(self, queries: DataFrame) -> DataFrame:
        """The queries of each client for each domain, window by window. What is said last of a window counts.

        Subdomains are told apart by 64 bits of a hash: among a million in one window, two are taken for one with a
        probability of 3e-8.
        """
        delay = f"{round(self.allowed_lateness_s * 1000) + 1000} milliseconds"  # Spark keeps watermarks in milliseconds
        timed = queries.withColumn("at", F.timestamp_micros("at_us")).withWatermark("at", delay)
        kept = timed.groupBy(F.window("at", f"{self.window_s} seconds"), "outcome", "client", "domain")
        sums = kept.agg(
            F.count("*").alias("queries"),
            F.size(F.collect_set(F.xxhash64("sub"))).cast("long").alias("subdomains"),
            F.sum("data_type").alias("data_queries"),
            F.sum("bytes").alias("bytes"),
            F.sum("sub_chars").alias("sub_chars"),
            F.sum("sub_digits").alias("sub_digits"),
            F.max("longest_label").alias("longest_label"),
            F.sum("entropy_millibit").alias("entropy_millibit"),
        )
        return sums.select(F.col("window.start").alias("window_start"), *sums.columns[1:])

    def classified(self, windows: DataFrame) -> DataFrame:
        """A verdict on each window; none on rows that were refused. All in whole numbers."""
        limits = self.thresholds
        queries = F.col("queries")
        signs = (
            F.col("subdomains") * 100 >= queries * limits.min_distinct_percent,
            F.col("entropy_millibit") >= queries * limits.min_mean_entropy_millibit,
            F.col("sub_chars") >= queries * limits.min_mean_sub_chars,
            F.col("data_queries") * 100 >= queries * limits.min_data_percent,
        )
        shown = signs[0].cast("int") + signs[1].cast("int") + signs[2].cast("int") + signs[3].cast("int")
        verdict = (
            F.when(F.col("outcome") != KEPT, "")
            .when((shown >= 3) & (queries >= limits.min_queries), Verdict.TUNNEL.value)
            .when(shown >= 2, Verdict.SUSPICIOUS.value)
            .otherwise(Verdict.NORMAL.value)
        )
        return windows.withColumn("verdict", verdict)

    def _outcome(self) -> Column:
        window_us = self.window_s * 1_000_000
        asked = F.col("asked_us")
        closed_us = asked - F.pmod(asked, F.lit(window_us)) + window_us + round(self.allowed_lateness_s * 1e6)
        name = F.col("name")
        return (
            F.when(F.size("f") != 5, BAD_FIELDS)
            .when(asked.isNull(), BAD_TIME)
            .when(~_field(1).rlike(ADDRESS), BAD_CLIENT)
            .when((F.length(name) > MAX_NAME) | ~name.rlike(NAME), BAD_NAME)
            .when(~_field(3).isin(*TYPES), BAD_TYPE)
            .when(~_field(4).rlike(WHOLE), BAD_BYTES)
            .when(asked > F.col("received_us"), FROM_THE_FUTURE)
            .when(F.col("received_us") >= closed_us, TOO_LATE)
            .otherwise(KEPT)
        )


def _field(number: int) -> Column:
    return F.get("f", F.lit(number))


def _measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sub = batch.column("sub")
        columns = [
            *batch.columns,
            pc.binary_length(sub).cast(pa.int64()),
            pa.array(digits(sub)),
            pa.array(longest_labels(sub)),
            pa.array(entropies_millibit(sub)),
        ]
        names = [*batch.schema.names, "sub_chars", "sub_digits", "longest_label", "entropy_millibit"]
        yield pa.RecordBatch.from_arrays(columns, names=names)
