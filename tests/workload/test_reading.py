"""Reading traces: what is understood, and that every refusal names the file, the row and what to do."""

from __future__ import annotations

import gzip
import os
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from springtide.errors import SpringtideError
from springtide.workload.reading import COUNT_COLUMNS, RATE_COLUMNS, TIME_COLUMNS, read_trace

DATA = Path(os.environ.get("SPRINGTIDE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def csv_file(folder: Path, text: str | bytes, name: str = "load.csv") -> Path:
    path = folder / name
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def parquet_file(folder: Path, **columns: object) -> Path:
    path = folder / "load.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def refusal(path: Path, **columns: str) -> str:
    with pytest.raises(SpringtideError) as caught:
        read_trace(path, **columns)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


# What is understood


def test_a_plain_csv(tmp_path: Path) -> None:
    made = read_trace(csv_file(tmp_path, "timestamp,count\n2024-05-01 08:00:00,10\n2024-05-01 08:01:00,20\n"))
    assert (made.name, made.step_s, made.start, made.gaps) == ("load", 60.0, "2024-05-01T08:00:00", 0)
    assert made.counts.tolist() == [10.0, 20.0]


def test_a_path_may_be_text(tmp_path: Path) -> None:
    assert read_trace(str(csv_file(tmp_path, "t,n\n0,1\n1,2\n"))).rows == 3.0


def test_a_gzipped_csv_and_capitals_in_its_name(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,n\n0,1\n1,2\n", name="load.csv.gz")
    assert read_trace(path).name == "load"
    assert read_trace(path.rename(tmp_path / "Load.CSV.GZ")).name == "Load"


@pytest.mark.parametrize(
    "text", ["t,n\r\n0,1\r\n1,2\r\n", "t,n\r0,1\r1,2", "\ufefft,n\n0,1\n1,2", "\n\n t , n \n 0 , 1 \n\n1,2 \n"]
)
def test_line_ends_byte_order_marks_and_blanks_do_not_matter(tmp_path: Path, text: str) -> None:
    assert read_trace(csv_file(tmp_path, text)).counts.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", TIME_COLUMNS)
def test_usual_names_of_times_are_found_in_any_case(tmp_path: Path, name: str) -> None:
    assert read_trace(csv_file(tmp_path, f"{name.upper()},count\n0,1\n5,2\n")).step_s == 5.0


@pytest.mark.parametrize("name", COUNT_COLUMNS)
def test_usual_names_of_counts_are_found_in_any_case(tmp_path: Path, name: str) -> None:
    assert read_trace(csv_file(tmp_path, f"t,{name.title()}\n0,1\n5,2\n")).rows == 3.0


@pytest.mark.parametrize("name", RATE_COLUMNS)
def test_a_rate_times_the_step_is_a_count(tmp_path: Path, name: str) -> None:
    assert read_trace(csv_file(tmp_path, f"t,{name}\n0,1\n5,2\n")).counts.tolist() == [5.0, 10.0]


def test_counts_are_preferred_to_rates_unless_rates_are_asked_for(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,rate,count\n0,7,1\n2,7,2\n")
    assert read_trace(path).rows == 3.0
    assert read_trace(path, rate_column="rate").rows == 28.0


def test_columns_can_be_named_in_any_case_and_others_are_ignored(tmp_path: Path) -> None:
    path = csv_file(tmp_path, 'When,"Who, exactly",Hits\n0,"a, b",1\n1,,2\n')
    assert read_trace(path, time_column="When", count_column="hits").rows == 3.0


@pytest.mark.parametrize(
    ("first", "second", "step_s", "start"),
    [
        ("0", "0.25", 0.25, None),
        ("-10", "-5", 5.0, None),
        ("1700000000.1", "1700000000.2", 0.1, None),
        ("2024-05-01", "2024-05-02", 86400.0, "2024-05-01T00:00:00"),
        ("2024-05-01 08:00", "2024-05-01 08:05", 300.0, "2024-05-01T08:00:00"),
        ("2024-05-01T08:00:00.0000000", "2024-05-01T08:00:00.5000000", 0.5, "2024-05-01T08:00:00"),
        ("2024-05-01T08:00:00.250", "2024-05-01T08:00:00.500", 0.25, "2024-05-01T08:00:00.250000"),
        ("2024-05-01T08:00:00Z", "2024-05-01T08:00:01Z", 1.0, "2024-05-01T08:00:00+00:00"),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T08:00:01+00:00", 1.0, "2024-05-01T08:00:00+00:00"),
        ("1969-12-31 23:59:59", "1970-01-01 00:00:00", 1.0, "1969-12-31T23:59:59"),
    ],
)
def test_times_are_seconds_or_iso_times(tmp_path: Path, first: str, second: str, step_s: float, start: str | None) -> None:
    made = read_trace(csv_file(tmp_path, f"t,n\n{first},1\n{second},2\n"))
    assert made.step_s == pytest.approx(step_s, abs=1e-12)
    assert made.start == start


def test_missing_steps_are_filled_in_a_straight_line_and_counted(tmp_path: Path) -> None:
    made = read_trace(csv_file(tmp_path, "t,n\n0,1\n10,1\n20,1\n50,7\n60,7\n80,3\n"))
    assert made.counts.tolist() == [1.0, 1.0, 1.0, 3.0, 5.0, 7.0, 7.0, 5.0, 3.0]
    assert (made.step_s, made.gaps) == (10.0, 3)


def test_where_no_difference_is_usual_the_median_is_the_step(tmp_path: Path) -> None:
    made = read_trace(csv_file(tmp_path, "t,n\n0,1\n59.9,2\n119.95,3\n179.92,4\n"))
    assert made.counts.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert made.step_s == pytest.approx(59.97)


def test_a_clock_that_jitters_and_drifts_loses_no_row(tmp_path: Path) -> None:
    chance = random.Random(7)
    times = np.cumsum([60.003 + chance.gauss(0, 0.02) for _ in range(5000)])
    made = read_trace(csv_file(tmp_path, "t,n\n" + "".join(f"{t:.3f},{i}\n" for i, t in enumerate(times))))
    assert (made.steps, made.gaps) == (5000, 0)
    assert made.step_s == pytest.approx(60.003, abs=0.01)


def test_nothing_but_zeros_is_a_trace(tmp_path: Path) -> None:
    assert read_trace(csv_file(tmp_path, "t,n\n0,0\n1,0\n")).rows == 0.0


# Parquet


NAIVE = [datetime(2024, 5, 1, 8) + timedelta(minutes=i) for i in range(3)]  # noqa: DTZ001 - a file may have no zone


@pytest.mark.parametrize(
    ("times", "step_s", "start"),
    [
        (pa.array([0, 1, 2], pa.int32()), 1.0, None),
        (pa.array([0.0, 0.5, 1.0]), 0.5, None),
        (pa.array([Decimal("0.5"), Decimal("1.0"), Decimal("1.5")]), 0.5, None),
        (pa.array(NAIVE, pa.timestamp("ms")), 60.0, "2024-05-01T08:00:00"),
        (pa.array(NAIVE, pa.timestamp("ns", "Europe/Berlin")), 60.0, "2024-05-01T08:00:00+00:00"),
        (pa.array([date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 3)]), 86400.0, "2024-05-01T00:00:00"),
        (pa.array(["2024-05-01", "2024-05-02", "2024-05-03"]), 86400.0, "2024-05-01T00:00:00"),
        (pa.array(["0", "1", "2"], pa.large_string()), 1.0, None),
        (pa.array(["0", "1", "2"]).dictionary_encode(), 1.0, None),
    ],
)
def test_parquet_times_of_every_kind(tmp_path: Path, times: pa.Array, step_s: float, start: str | None) -> None:
    made = read_trace(parquet_file(tmp_path, time=times, count=[1, 2, 3]))
    assert (made.step_s, made.start, made.counts.tolist()) == (step_s, start, [1.0, 2.0, 3.0])


def test_parquet_in_several_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "load.parquet"
    pq.write_table(pa.table({"t": list(range(100)), "n": list(range(100))}), path, row_group_size=7)
    assert read_trace(path).rows == 4950.0


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1.0, None, 3.0], "row 2: count is empty"),
        ([1.0, float("nan"), 3.0], "row 2: count 'nan' is not a finite number"),
        ([1.0, 2.0, -3.0], "row 3: count '-3' is negative"),
        ([[1], [2], [3]], "column 'count' holds list"),
        ([True, False, True], "column 'count' holds bool, not numbers; name another column"),
        (["1", "x", "3"], "row 2: count 'x' is not a number"),
    ],
)
def test_parquet_counts_that_are_refused(tmp_path: Path, counts: list[object], message: str) -> None:
    assert message in refusal(parquet_file(tmp_path, t=[0, 1, 2], count=counts))


def test_parquet_times_that_are_refused(tmp_path: Path) -> None:
    assert "row 2: t is empty" in refusal(parquet_file(tmp_path, t=pa.array([NAIVE[0], None]), n=[1, 2]))
    assert "column 't' holds bool, not times" in refusal(parquet_file(tmp_path, t=[True, False], n=[1, 2]))
    berlin = pa.array([NAIVE[1], NAIVE[0]], pa.timestamp("s", "Europe/Berlin"))
    assert "row 2: t '2024-05-01 08:00:00.000Z' is before" in refusal(parquet_file(tmp_path, t=berlin, n=[1, 2]))
    far = pa.array([datetime(2024, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)], pa.timestamp("s", "UTC"))
    assert "row 2: t '3000-01-01 00:00:00.000Z' is outside the years" in refusal(parquet_file(tmp_path, t=far, n=[1, 2]))


def test_huge_whole_numbers_are_numbers(tmp_path: Path) -> None:
    assert read_trace(parquet_file(tmp_path, t=[2**60, 2**60 + 2**50], n=[1, 2])).step_s == 2.0**50


# Files that cannot be used


def test_a_missing_file_a_directory_and_an_unknown_kind(tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / "missing.csv")
    assert "there is no such file" in refusal(tmp_path / "bursty")
    assert "is a directory; name one file in it" in refusal(tmp_path)
    (tmp_path / "load.json").write_text("{}")
    assert "unknown kind of file '.json'; known: .csv, .csv.gz, .parquet" in refusal(tmp_path / "load.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,n\n0,1\n1,2\n")
    path.chmod(0)
    assert "cannot be read: Permission denied" in refusal(path)


def test_a_path_the_system_refuses(tmp_path: Path) -> None:
    assert "cannot be read: File name too long" in refusal(tmp_path / ("x" * 300 + ".csv"))


@pytest.mark.parametrize("name", ["load.csv", "load.csv.gz", "load.parquet"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert "is empty" in refusal(tmp_path / name)


@pytest.mark.parametrize("text", ["t,n", "t,n\n", "t,n\r\n\r\n"])
def test_a_header_without_rows(tmp_path: Path, text: str) -> None:
    assert "has a header and no rows" in refusal(csv_file(tmp_path, text))


def test_an_empty_gzip_blank_lines_and_a_parquet_file_without_rows(tmp_path: Path) -> None:
    assert "is empty" in refusal(csv_file(tmp_path, "", name="load.csv.gz"))
    assert "is empty" in refusal(csv_file(tmp_path, "\n\n  \n"))
    assert "has columns and no rows" in refusal(parquet_file(tmp_path, t=pa.array([], pa.int64()), n=pa.array([], pa.int64())))


def test_files_that_are_not_what_their_name_says(tmp_path: Path) -> None:
    whole = gzip.compress(b"t,n\n" + b"".join(b"%d,1\n" % i for i in range(1000)))
    for content in (b"t,n\n0,1\n1,2\n", whole[: len(whole) // 2], whole[:40] + b"\xff" * 40 + whole[80:]):
        (tmp_path / "load.csv.gz").write_bytes(content)
        assert "is not a gzip file, though its name says so" in refusal(tmp_path / "load.csv.gz")
    (tmp_path / "load.parquet").write_text("t,n\n0,1\n1,2\n")
    assert "is not a Parquet file" in refusal(tmp_path / "load.parquet")


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    path = parquet_file(tmp_path, t=list(range(1000)), n=[random.Random(i).random() for i in range(1000)])
    content = path.read_bytes()
    path.write_bytes(content[:20] + b"\xff" * 400 + content[420:])
    assert "is not a Parquet file" in refusal(path)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["load.csv", "load.csv.gz", "load.parquet"])
def test_binary_garbage_is_refused_in_one_line(tmp_path: Path, name: str, seed: int) -> None:
    (tmp_path / name).write_bytes(random.Random(seed).randbytes(500))
    assert "is not a" in refusal(tmp_path / name)


def test_one_endless_line_is_refused(tmp_path: Path) -> None:
    assert "is not a CSV file" in refusal(csv_file(tmp_path, "x" * 200_000 + "\n1\n"))


def test_an_unfinished_quote_is_refused(tmp_path: Path) -> None:
    refusal(csv_file(tmp_path, 't,n\n0,1\n1,"2\n2,3\n3,4\n'))


# Columns


def test_columns_that_are_not_found_are_named_with_the_option_to_use(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "when,hits\n0,1\n1,2\n")
    message = refusal(path)
    assert "'when', 'hits'" in message
    assert "--time-column" in message
    message = refusal(path, time_column="when")
    assert "'when', 'hits'" in message
    assert "--count-column or --rate-column" in message


@pytest.mark.parametrize("option", ["time_column", "count_column", "rate_column"])
def test_a_wrong_column_is_answered_with_the_nearest(tmp_path: Path, option: str) -> None:
    path = csv_file(tmp_path, "timestamp,count,rate\n0,1,1\n1,2,2\n")
    message = refusal(path, **{option: "timestmp"})
    assert "there is no column 'timestmp'; did you mean 'timestamp'?" in message
    assert f"--{option.replace('_', '-')}" in message


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    assert "2 columns are named 'n'" in refusal(csv_file(tmp_path, "t,n,n\n0,1,1\n1,2,2\n"))


def test_names_in_two_cases_are_told_apart(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,n,N\n0,1,10\n1,2,20\n")
    assert read_trace(path, count_column="N").rows == 30.0


def test_a_count_and_a_rate_cannot_both_be_asked_for(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,n,rate\n0,1,1\n1,2,2\n")
    assert "--count-column or --rate-column, not both" in refusal(path, count_column="n", rate_column="rate")


def test_a_wide_table_is_not_listed_whole(tmp_path: Path) -> None:
    header = ",".join(f"c{i}" for i in range(500))
    assert "'c11', ...; name yours" in refusal(csv_file(tmp_path, f"{header}\n{header}\n"))


# Rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,1\n1,abc\n2,3", "row 2: n 'abc' is not a number"),
        ("0,1\n1,\n2,3", "row 2: n is empty; give it a value, or remove the row"),
        ("0,1\n1,  \n2,3", "row 2: n is empty"),
        ("0,1\n1,2\n2,NaN", "row 3: n 'NaN' is not a finite number"),
        ("0,inf\n1,2", "row 1: n 'inf' is not a finite number"),
        ("0,1\n\n1,-5\n2,3", "row 2: n '-5' is negative; use 0"),
        ("x,1\n1,2", "row 1: t 'x' is neither a number of seconds nor an ISO time"),
        ("0,1\nx,2", "row 2: t 'x' is not a number"),
        (",1\n1,2", "row 1: t is empty"),
        ("0,1\nnan,2", "row 2: t 'nan' is not a finite number"),
        ("2024-05-01,1\n2024-05-32,2", "row 2: t '2024-05-32' is neither a number of seconds nor an ISO time"),
        ("2024-05-01 08:00:00Z,1\n2024-05-01 08:00:01,2", "row 2: t '2024-05-01 08:00:01' is not an ISO time with a time zone"),
        ("0,1\n1,2\n2,3\n1.5,4", "row 4: t '1.5' is before that of the row above, '2'; sort the rows by time"),
        ("0,1\n1,2\n1,3\n2,4", "row 3: t '1' occurs twice; keep one row for each time"),
        ("0,1\n10,2\n20,3\n21,4\n30,5", "row 4: t '21' falls in the same step of 10 s as the row before"),
        ("0,1\n10,2\n20,3\n25,4\n30,5\n40,6", "row 4: t '25' is not a whole number of steps of 10 s after row 1"),
        ("0,1\n1,2,3\n2,3", "row 2: has 3 cells where the header has 2: '1,2,3'"),
        ("0,1\n1\n2,3", "row 2: has 1 cells where the header has 2: '1'"),
        ("0,1", "has a single row, which does not tell how long a step is"),
        ("0,1\n1,2\n2,3\n5000,4", "4 rows for 5,001 steps are too few"),
        ("0,1\n1e-9,2\n2e-9,3", "less than a microsecond apart"),
        ("0,1\n1," + "9" * 50 + "x" * 50, "x...' is not a number"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, rows: str, message: str) -> None:
    assert message in refusal(csv_file(tmp_path, f"t,n\n{rows}\n"))


def test_a_wrong_cell_far_down_is_found(tmp_path: Path) -> None:
    cells = ["1"] * 100_000
    cells[76_542] = cells[76_543] = "oops"
    text = "t,n\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    assert "row 76543: n 'oops'" in refusal(csv_file(tmp_path, text))


def test_single_events_are_told_from_steps(tmp_path: Path) -> None:
    chance = random.Random(3)
    times = sorted(chance.uniform(0, 3600) for _ in range(2000))
    assert "count single events" in refusal(csv_file(tmp_path, "t,n\n" + "".join(f"{t:.7f},1\n" for t in times)))


# Real files


@pytest.mark.parametrize(
    ("name", "step_s", "steps", "gaps", "start"),
    [
        ("bgelasor_periodic.csv.gz", 300.0, 17_568, 72, "2019-03-08T00:00:00"),
        ("bgelasor_fluctuating.csv.gz", 600.0, 8_784, 38, "2019-03-08T00:00:00"),
        ("covid_tweets_rpi_20200317_0408_1min.csv.gz", 60.0, 33_120, 0, "2020-03-17T00:00:00"),
        ("nasa_http_19950711_14_1s.csv.gz", 1.0, 345_600, 0, "1995-07-11T00:00:00"),
        ("twitter_stream_202108_day01_15_1s.parquet", 1.0, 1_296_000, 0, None),
        ("worldcup98_to_0705_1min.csv.gz", 60.0, 95_190, 10, "1998-04-30T21:30:00"),
    ],
)
def test_real_files(name: str, step_s: float, steps: int, gaps: int, start: str | None) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    made = read_trace(path)
    assert (made.step_s, made.steps, made.gaps, made.start) == (step_s, steps, gaps, start)


def test_real_events_are_refused_with_advice() -> None:
    path = DATA / "lobster_AMZN_20120621_messages_level1.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    assert "one row" in refusal(path, count_column="size")
