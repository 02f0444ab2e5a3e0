"""When each row happened, as Spark columns: microseconds since 1970, and the zone or unit that the file gave the time in.

Rules: a time is ISO text with or without a zone, a timestamp, a date, or a number of seconds (of milli-, micro- or nanoseconds
where it is too large for that). A time without a zone is UTC. These columns belong to a session whose zone is UTC.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType, StringType

# What follows the time of the day. The first eleven characters are the date and a T, or a date with less than two digits each
# and some of the time: none of them belongs to the zone.
_ZONE_FROM = 12
_ZONE = "([+-][0-9:]+|[A-Za-z][A-Za-z0-9/_+:-]*)$"
_UTC = ("Z", "UTC", "GMT", "+0000", "-0000")

# The largest number that may be seconds is in the year 5138; as milliseconds it is in 1973.
_UNITS = (("seconds", 1e11, 1e6), ("milliseconds", 1e14, 1e3), ("microseconds", 1e17, 1.0))
_SMALLEST_UNIT = ("nanoseconds", 1e-3)


def microseconds(time: Column, kind: DataType) -> Column:
    """Null where the cell holds no time."""
    if isinstance(kind, NumericType):
        return _scaled(time.cast("double"))
    if not isinstance(kind, StringType):
        return F.unix_micros(time.cast("timestamp"))
    return F.when(_is_iso(time), F.unix_micros(time.cast("timestamp"))).otherwise(_scaled(time.cast("double")))


def zone(time: Column, kind: DataType) -> Column:
    """The zone that a time was given in, as it was spelt, or the unit of a number; empty where there is none."""
    if isinstance(kind, NumericType):
        return _unit(time.cast("double"))
    if not isinstance(kind, StringType):
        return F.lit("")
    given = F.regexp_extract(F.substring(time, _ZONE_FROM, 40), _ZONE, 1)
    return F.when(_is_iso(time), given).otherwise(_unit(time.cast("double")))


def zone_name(spelt: str) -> str:
    """One name for every way to spell a zone.

    >>> zone_name("Z"), zone_name("+01"), zone_name("+01:00"), zone_name("")
    ('UTC', '+0100', '+0100', 'no zone')
    """
    if not spelt:
        return "no zone"
    name = spelt.replace(":", "")
    if name[0] in "+-":
        name = name[0] + name[1:].zfill(2).ljust(4, "0")
    return "UTC" if name.upper() in _UTC else name


def _is_iso(text: Column) -> Column:
    # Spark would take a time of the day without a date for one of today.
    return F.substring(text, 5, 1) == "-"


def _scaled(number: Column) -> Column:
    scaled = number * _SMALLEST_UNIT[1]
    for _, limit, factor in reversed(_UNITS):
        scaled = F.when(F.abs(number) < limit, number * factor).otherwise(scaled)
    return F.when(F.abs(number) < 1e21, F.round(scaled).cast("long"))


def _unit(number: Column) -> Column:
    unit: Column = F.lit(_SMALLEST_UNIT[0])
    for name, limit, _ in reversed(_UNITS):
        unit = F.when(F.abs(number) < limit, F.lit(name)).otherwise(unit)
    return unit
