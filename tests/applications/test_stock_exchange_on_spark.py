"""The stock exchange as streaming queries: the transactor in small batches and in one, and analyses behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import springtide
from springtide.applications.results import ResultTable
from springtide.applications.stock_exchange.application import StockExchange
from springtide.applications.stock_exchange.tape import TOLD
from springtide.applications.stock_exchange.transactor import transacted

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG_AGO = 1_700_000_000.0
# The others are watches as the index is one, and differ in nothing that Spark sees.
STREAMED = ["composite-index", "vwap", "candles"]
AT_ONCE = ["volume", "cash-flow", "large-trade"]  # made of the same functions as those that are streamed, or without state
ANALYTICS = ",".join(STREAMED + AT_ONCE)
EXCHANGE = StockExchange(
    recorded=False,
    stocks=3,
    until="09:32",
    analytics=ANALYTICS,
    faults_per_1000=20.0,
    burst_shares=4000,
    jump_permille=0.2,
    alarm_permille=1,
)


def run(stream: DataFrame, table: ResultTable, output_mode: str = "append") -> Any:
    """A query that reads all there is; one file for each of its batches."""

    def save(df: DataFrame, batch_id: int) -> None:
        table.save(df.coalesce(1), batch_id)

    writer = stream.writeStream.outputMode(output_mode).foreachBatch(save)
    checkpoint = table.folder.parent.parent / "checkpoints" / table.folder.name
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def run_transactor(spark: SparkSession, folder: Path, max_rows_per_batch: int | None) -> int:
    """Tells in how many batches it went."""
    feed = EXCHANGE.feed()
    orders = springtide.replay(
        spark,
        springtide.Trace.of_times(name="orders", times_s=feed.times_s),
        rows=springtide.Recorded.keep(feed.rows, folder / "rows" / "orders.arrow"),
        max_rows_per_batch=max_rows_per_batch,
        started_at=LONG_AGO,
    )
    query = run(transacted(orders), EXCHANGE.results(folder, "transactor"))
    assert query.awaitTermination(180)
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def run_analyses(spark: SparkSession, folder: Path) -> None:
    """As a stream of the transactor's batches, two at a time, or of all its rows at once."""
    queries, told = [], EXCHANGE.results(folder, "transactor")
    for name, analysis in EXCHANGE.analyses().items():
        if name in AT_ONCE:
            EXCHANGE.results(folder, name).save(analysis.told(told.read(spark)), 0)
            continue
        files = spark.readStream.schema(TOLD).option("maxFilesPerTrigger", 2).option("recursiveFileLookup", True)
        trades = files.parquet(str(told.folder))
        queries.append(run(analysis.told(trades), EXCHANGE.results(folder, name), analysis.output_mode))
    for query in queries:
        assert query.awaitTermination(180), query.name


def test_trades_rejections_and_analyses_are_exact_in_small_batches(spark: SparkSession, tmp_path: Path) -> None:
    assert run_transactor(spark, tmp_path, 1800) == 4
    run_analyses(spark, tmp_path)
    checked = {one.what: one for one in EXCHANGE.check(spark, tmp_path)}
    assert [one for one in checked.values() if one.wrong] == []
    assert len(checked) == 2 + 6
    assert min(one.rows for one in checked.values()) > 0
    assert checked["trades of all stocks, in order"].rows > 1000


def test_trades_and_rejections_are_exact_in_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    assert run_transactor(spark, tmp_path, None) == 1
    alone = StockExchange(recorded=False, stocks=3, until="09:32", analytics="none", faults_per_1000=20.0)
    assert [one.wrong for one in alone.check(spark, tmp_path)] == [0, 0]
