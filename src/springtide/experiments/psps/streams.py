"""The rates that come in: the paper's own where they are at hand, other recorded ones or generated ones where they are not.

The paper takes periods of a collection of COVID-19 tweets "that present high variation", "a combination of traffic spikes and
under spikes", smoothed for most of its experiments and raw for one (sections V-A 2 and V-E), and DNS traffic. Its authors have
published what they fed their system with, second by second: see `Stream.own`. Those files begin with the run. Of other
recordings a stretch is replayed faster than it was recorded; the stretches whose rate goes up and down most come before the
others. Rates are scaled so that the busiest second is the one that the over-provisioned configuration is made for.

Rules: a stream is a pure function of its name, of which stretch is asked for, and of which files there are. Where the paper's
own stream is at hand it is stretch 0, and those of the other recording follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from springtide.errors import InvalidValue, nearest
from springtide.model.observation import FloatArray
from springtide.workload.generators import bursty_day
from springtide.workload.reading import read_trace
from springtide.workload.recordings import RECORDINGS, data_folder, recording_in
from springtide.workload.traces import Trace

DURATION_S = 1080.0  # the paper's figures reach beyond 950 s; a whole number of time intervals of 30, 60, 120 and 180 s
OWN_DURATION_S = 1300.0  # of the paper's own streams of tweets, which have 1,301 steps
PAPERS_OWN, RECORDED, GENERATED = "the paper's own", "recorded", "generated"

_INTERVAL_S = 30.0
_SMOOTHED_OVER_S = 60
_STRETCHES_BEGIN_EVERY = 0.25  # of their length
_OWN_TWEETS = "psps_tweets_smoothed_1s.csv.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A recording, how many of its seconds pass in one, and the rate of its busiest second.

    A raw stream has the scale of the smoothed one. `own` is the file of the paper's own stream, as its authors publish it
    (github.com/dwladdimiroc/storm-app-serverless, src/main/resources: sbac.csv, twitter-raw.csv and dns.csv), and `scaled_by`
    the one whose busiest second tells the scale.
    """

    recording: str
    speed_up: float
    peak_rows_per_s: float
    smooth: bool
    own: str
    scaled_by: str
    raw: bool = False


STREAMS = {
    "tweets": Stream(
        recording="covid-rpi", speed_up=60.0, peak_rows_per_s=4000.0, smooth=True, own=_OWN_TWEETS, scaled_by=_OWN_TWEETS
    ),
    "raw-tweets": Stream(
        recording="covid-rpi",
        speed_up=60.0,
        peak_rows_per_s=4000.0,
        smooth=True,
        own="psps_tweets_raw_1s.csv.gz",
        scaled_by=_OWN_TWEETS,
        raw=True,
    ),
    "dns": Stream(
        recording="nasa-launch",
        speed_up=10.0,
        peak_rows_per_s=3000.0,
        smooth=False,
        own="psps_dns_1s.csv.gz",
        scaled_by="psps_dns_1s.csv.gz",
    ),
}


def origin(name: str, stretch: int) -> str:
    """Where a stretch comes from: the paper's own, another recording, or a generator."""
    stream = _stream(name)
    if stretch == 0 and _has_own(stream):
        return PAPERS_OWN
    return RECORDED if _is_recorded(stream) else GENERATED


def rates(name: str, stretch: int) -> Trace:
    """A stream's stretch, in steps of one second: of a recording, first the one whose rate varies most."""
    stream = _stream(name)
    found = _own(stream) if origin(name, stretch) == PAPERS_OWN else _other(stream, stretch - _has_own(stream))
    return replace(found, name=f"{name}-{stretch}")


def _own(stream: Stream) -> Trace:
    beginning, scaled_by = (_beginning(data_folder() / file) for file in (stream.own, stream.scaled_by))
    return replace(beginning.scaled(stream.peak_rows_per_s / scaled_by.peak_rate_per_s), start=None)


def _beginning(file: Path) -> Trace:
    return read_trace(file).cut(0.0, OWN_DURATION_S)


def _has_own(stream: Stream) -> bool:
    return all((data_folder() / file).is_file() for file in (stream.own, stream.scaled_by))


def _is_recorded(stream: Stream) -> bool:
    return (data_folder() / RECORDINGS[stream.recording].file).is_file()


def _other(stream: Stream, stretch: int) -> Trace:
    """A stretch of the other recording, or of a generated day."""
    if _is_recorded(stream):
        whole, number = recording_in(data_folder(), stream.recording).read(data_folder()), stretch
    else:
        whole, number = bursty_day(seed=stretch + 1), 0
    raw = replace(whole.resampled(stream.speed_up), step_s=1.0, start=None, gaps=0)
    smooth = replace(raw, counts=_smoothed(raw.counts)) if stream.smooth else raw
    begin_s = _liveliest(smooth, number)
    scale = stream.peak_rows_per_s / smooth.cut(begin_s, begin_s + DURATION_S).peak_rate_per_s
    chosen = raw if stream.raw else smooth
    return chosen.cut(begin_s, begin_s + DURATION_S).scaled(scale)


def _stream(name: str) -> Stream:
    if name not in STREAMS:
        raise InvalidValue(f"there is no stream {name!r}; {nearest(name, STREAMS)}")
    return STREAMS[name]


def _smoothed(counts: FloatArray) -> FloatArray:
    """The moving mean around each step; at both ends, of those there are."""
    window = np.ones(_SMOOTHED_OVER_S)
    smooth: FloatArray = np.convolve(counts, window, mode="same") / np.convolve(np.ones(counts.size), window, mode="same")
    return smooth


def _liveliest(trace: Trace, number: int) -> float:
    """Where the stretch begins that varies most, after `number` others that it does not overlap."""
    length = int(DURATION_S)
    begins = np.arange(0, trace.steps - length + 1, round(length * _STRETCHES_BEGIN_EVERY))
    variations = np.array([_variation(trace.counts[begin : begin + length]) for begin in begins])
    for _ in range(number):
        best = begins[int(np.argmax(variations))]
        variations[np.abs(begins - best) < length] = -1.0
    if variations.max() < 0:
        raise InvalidValue(f"{trace.name}: has no stretch {number} of {length} s beside the others; ask for an earlier one")
    return float(begins[int(np.argmax(variations))])


def _variation(counts: FloatArray) -> float:
    """All changes from one time interval to the next, over the mean. A recorder or a server that stood still does not count."""
    rows = counts.reshape(-1, int(_INTERVAL_S)).sum(axis=1)
    return float(np.abs(np.diff(rows)).sum() / rows.mean()) if rows.min() > 0 else -1.0
