"""Metrics: what Prometheus gets, and that documentation and Grafana speak of exactly that."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from journals import COSTS, POOL, append, control_line, observation_line, older, placed, small_run, write
from prometheus_client.parser import text_string_to_metric_families
from served import ask, dashboard

import factories
from springtide.dashboard.metric_names import METRICS, OPERATOR_METRICS, Kind
from springtide.model.batch import Estimate
from springtide.model.observation import HostState

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"springtide_[a-z_]+")
# What flink-kubernetes-operator reports of every vertex of a job.
OF_FLINK = {
    "LOAD", "TRUE_PROCESSING_RATE", "TARGET_DATA_RATE", "CATCH_UP_DATA_RATE", "LAG", "PARALLELISM", "RECOMMENDED_PARALLELISM",
    "MAX_PARALLELISM", "NUM_SOURCE_PARTITIONS", "SCALE_UP_RATE_THRESHOLD", "SCALE_DOWN_RATE_THRESHOLD",
    "EXPECTED_PROCESSING_RATE",
}  # fmt: skip

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(*paths: Path) -> Samples:
    answer = ask(dashboard(*paths), "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset({"run": "0", "application": "clicks", **labels}.items())]


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return write(tmp_path / "live.jsonl", small_run(pool=POOL, live=True))


def test_the_newest_interval_of_a_run(live: Path) -> None:
    samples = scraped(live)
    assert value(samples, "springtide_offered_rows_per_second", source="source") == pytest.approx(120.0)
    assert value(samples, "springtide_capacity_rows_per_second") == pytest.approx(4000.0)
    assert value(samples, "springtide_forecast_rows_per_second", bound="high") == pytest.approx(250.0)
    assert value(samples, "springtide_latency_seconds", quantile="0.99") == pytest.approx(0.2)
    assert value(samples, "springtide_slo_latency_seconds") == 5.0
    assert value(samples, "springtide_hosts", state="running") == 2
    assert value(samples, "springtide_hosts", state="starting") == 0
    assert value(samples, "springtide_core_seconds_total") == 960.0
    assert value(samples, "springtide_static_core_seconds") == pytest.approx(1440.0)
    assert value(samples, "springtide_reconfigurations_total", kind="hosts_added") == 1
    assert value(samples, "springtide_vetoes_total") == 1
    assert value(samples, "springtide_run_state", state="running") == 1
    assert value(samples, "springtide_run_state", state="failed") == 0
    assert value(samples, "springtide_run_info", file="live.jsonl", policy="static") == 1


def test_an_operator_that_is_behind_needs_more_than_it_has(live: Path) -> None:
    # 2 replicas of 1 ms a row take 2,000 rows/s; 3,000 come, and 60,000 wait for an interval of a minute: 1,000 more a second.
    behind = observation_line(
        3, allocation=placed(2, 2), requested=placed(2, 4), rows=180_000.0, backlog_rows={"count": 60_000.0}
    )
    append(live, behind)
    samples = scraped(live)

    def of_count(name: str) -> float:
        return value(samples, f"springtide_operator_{name}", operator="count")

    assert of_count("capacity_rows_per_second") == pytest.approx(2000.0)
    assert of_count("target_rows_per_second") == pytest.approx(3000.0)
    assert of_count("catch_up_rows_per_second") == pytest.approx(1000.0)
    assert of_count("scale_up_rows_per_second") == pytest.approx(4000.0)
    assert of_count("scale_down_rows_per_second") == pytest.approx(8000.0)
    assert (of_count("replicas"), of_count("requested_replicas"), of_count("max_replicas")) == (2, 4, 4)
    assert of_count("expected_capacity_rows_per_second") == pytest.approx(4000.0)
    assert (of_count("shards"), of_count("backlog_rows")) == (4, 60_000.0)
    labels = frozenset({"run": "0", "application": "clicks", "operator": "parse"}.items())
    assert ("springtide_operator_scale_down_rows_per_second", labels) not in samples  # it has one replica


def parts(samples: Samples, name: str, operator: str) -> dict[str, float]:
    """The values of a metric of one operator, by `part`."""
    of_it = {labels: value for (n, labels), value in samples.items() if n == name and ("operator", operator) in labels}
    return {dict(labels)["part"]: value for labels, value in of_it.items()}


def names_of(samples: Samples, operator: str) -> set[str]:
    return {name for name, labels in samples if ("operator", operator) in labels}


def test_what_a_batch_costs_comes_with_its_errors(live: Path) -> None:
    append(live, observation_line(3, allocation=placed(2, 2), costs={"count": COSTS}))
    samples = scraped(live)
    assert parts(samples, "springtide_operator_batch_cost_seconds", "count") == {
        "driver": 0.3184, "batch": 0.08195, "task": 0.07545, "shard": 0.06848, "row": 0.00304,
    }  # fmt: skip
    assert parts(samples, "springtide_operator_batch_cost_error_seconds", "count") == {
        "driver": 0.02918, "batch": 0.03681, "task": 0.07338, "shard": 0.02494, "row": 0.0005984,
    }  # fmt: skip
    assert value(samples, "springtide_operator_batch_skew_ratio", operator="count") == 1.171
    assert value(samples, "springtide_operator_batch_skew_error_ratio", operator="count") == 0.7115
    assert value(samples, "springtide_operator_learned_batches", operator="count") == 9.571


def test_an_operator_without_costs_exports_none(live: Path) -> None:
    append(live, observation_line(3, costs={"count": COSTS}))
    samples = scraped(live)
    of_costs = {metric.name for metric in METRICS if "_batch_" in metric.name or metric.name.endswith("_learned_batches")}
    assert len(of_costs) == 5
    assert of_costs <= names_of(samples, "count")
    assert of_costs & names_of(samples, "parse") == set()
    assert "springtide_operator_busy_ratio" in names_of(samples, "parse")
    append(live, observation_line(4))  # the newest interval is what counts
    assert of_costs & {name for name, _ in scraped(live)} == set()


def test_an_operator_without_shards_has_no_cost_of_a_shard(live: Path) -> None:
    append(live, observation_line(3, costs={"parse": COSTS}))
    samples = scraped(live)
    for name in ("springtide_operator_batch_cost_seconds", "springtide_operator_batch_cost_error_seconds"):
        assert parts(samples, name, "parse").keys() == {"driver", "batch", "task", "row"}


def test_an_error_that_is_not_finite_is_left_out(live: Path) -> None:
    append(live, observation_line(3, costs={"count": replace(COSTS, task_s=Estimate(value=0.05, error=math.inf))}))
    samples = scraped(live)
    assert parts(samples, "springtide_operator_batch_cost_seconds", "count")["task"] == 0.05
    assert "task" not in parts(samples, "springtide_operator_batch_cost_error_seconds", "count")


def test_busy_shares_stand_beside_utilisation(live: Path) -> None:
    append(live, observation_line(3, allocation=placed(2, 2), utilisation=0.4, busy_share=0.9))
    samples = scraped(live)
    assert value(samples, "springtide_operator_utilisation_ratio", operator="count") == 0.4
    assert value(samples, "springtide_operator_busy_ratio", operator="count") == 0.9
    for host in ("host-0", "host-1"):
        assert value(samples, "springtide_host_utilisation_ratio", host=host) == pytest.approx(0.4)
        assert value(samples, "springtide_host_busy_ratio", host=host) == 0.9


def test_only_running_hosts_say_how_busy_they_are(live: Path) -> None:
    hosts = {
        "host-0": factories.host_observation("host-0"),
        "host-1": factories.host_observation("host-1", state=HostState.STARTING, utilisation=0.0),
    }
    append(live, observation_line(3, allocation=placed(2, 2), hosts=hosts))
    samples = scraped(live)
    assert {dict(labels)["host"] for name, labels in samples if name == "springtide_host_busy_ratio"} == {"host-0"}
    assert {dict(labels)["host"] for name, labels in samples if name == "springtide_host_utilisation_ratio"} == {"host-0"}


def test_a_journal_of_an_older_version_has_no_busy_shares(live: Path) -> None:
    append(live, older(observation_line(3, utilisation=0.4)))
    samples = scraped(live)
    assert value(samples, "springtide_operator_utilisation_ratio", operator="count") == 0.4
    assert value(samples, "springtide_host_utilisation_ratio", host="host-0") == pytest.approx(0.4)
    told = {name for name, _ in samples}
    assert told & {"springtide_operator_busy_ratio", "springtide_host_busy_ratio"} == set()


def test_late_intervals_are_counted_and_a_pause_is_seen(live: Path) -> None:
    append(live, observation_line(3, latency_s=7.0), observation_line(4, latency_s=3.0), control_line(4, "pause"))
    samples = scraped(live)
    assert value(samples, "springtide_slo_violations_total") == 1
    assert value(samples, "springtide_paused") == 1


def test_latency_is_that_of_the_rows_that_left_last(live: Path) -> None:
    append(live, observation_line(3, latency_s=7.0), observation_line(4, rows=0.0))
    samples = scraped(live)
    assert value(samples, "springtide_offered_rows_per_second", source="source") == 0.0
    assert value(samples, "springtide_latency_slo_seconds") == pytest.approx(7.0)
    assert value(samples, "springtide_latency_seconds", quantile="0.9") == pytest.approx(7.0)


def test_two_runs_are_told_apart_and_one_that_has_not_begun_says_so(live: Path, tmp_path: Path) -> None:
    samples = scraped(live, live, tmp_path / "later.jsonl")
    assert {dict(labels)["run"] for name, labels in samples if name == "springtide_intervals_total"} == {"0", "1"}
    empty = frozenset({"run": "2", "application": "", "state": "empty"}.items())
    assert samples["springtide_run_state", empty] == 1


def test_every_metric_is_told_once_there_is_something_to_tell(live: Path) -> None:
    append(live, observation_line(3, allocation=placed(2, 2), costs={"count": COSTS}))
    told = {name for name, _ in scraped(live)}
    in_the_background = {"springtide_oracle_core_seconds"}
    assert {metric.name for metric in METRICS} - told == in_the_background


def test_the_twelve_of_flink_are_all_there() -> None:
    assert {metric.flink for metric in OPERATOR_METRICS} == OF_FLINK
    assert len(OPERATOR_METRICS) == 12


def test_the_documentation_names_every_metric_with_its_unit_meaning_and_flinks_name() -> None:
    text = (DOCS / "metrics.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `springtide_")]
    assert [NAME.search(row)[0] for row in rows] == [metric.name for metric in METRICS]  # type: ignore[index]
    for row, metric in zip(rows, METRICS, strict=True):
        for word in (metric.unit, metric.meaning, metric.flink, *(f"`{label}`" for label in metric.labels if not metric.flink)):
            assert word in row, (metric.name, word)
    assert set(NAME.findall(text)) - {metric.name for metric in METRICS} == set()


def test_grafanas_file_shows_every_metric_and_no_other() -> None:
    shown = json.loads((DOCS / "grafana" / "springtide.json").read_text())
    expressions = [target["expr"] for panel in shown["panels"] for target in panel.get("targets", [])]
    assert {name for expression in expressions for name in NAME.findall(expression)} == {metric.name for metric in METRICS}


def test_grafanas_file_can_be_imported_wherever_prometheus_is() -> None:
    shown = json.loads((DOCS / "grafana" / "springtide.json").read_text())
    variables = shown["templating"]["list"]
    assert [v["name"] for v in variables if v["type"] == "datasource"] == ["datasource"]
    assert shown["schemaVersion"] >= 42
    for panel in shown["panels"]:
        for asked in [panel, *panel.get("targets", [])]:
            if panel["type"] != "row":
                assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    identities = [panel["id"] for panel in shown["panels"]]
    assert len(set(identities)) == len(identities)


def test_counters_and_gauges_are_named_as_prometheus_wants_it() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"springtide_[a-z_]+[a-z]", metric.name)
        assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
