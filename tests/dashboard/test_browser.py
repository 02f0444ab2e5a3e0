"""The page in a real Chromium, as people use it: it draws what the journal says, goes on with it, and asks before it acts."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browser import Recording, Served, chromium, serve, shard_hosts, springtide, write
from journals import write_week
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytestmark = pytest.mark.slow

LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}
BEGUN = 9  # intervals of a run that is still going, where a test needs one
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOURED = """canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const colour = [data[i], data[i + 1], data[i + 2]];
    if (data[i + 3] > 128 && Math.max(...colour) - Math.min(...colour) > 60) coloured++;
  }
  return coloured;
}"""

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        with playwright.chromium.launch(executable_path=path, args=options) as browser:
            yield browser


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run of 30 intervals that needs more hosts in its middle, and its like under another policy beside it."""
    folder = tmp_path_factory.mktemp("runs")
    trace = "generator:steps:levels=20/60/20,hold_s=300"
    springtide("simulate", trace, "-p", "local-thresholds", "--journal", "run.jsonl", folder=folder)
    springtide("simulate", trace, "-p", "static", "--journal", "other.jsonl", folder=folder)
    return folder / "run.jsonl"


@pytest.fixture(scope="module")
def recording(finished: Path) -> Recording:
    return Recording(finished)


@pytest.fixture
def live(recording: Recording, tmp_path: Path) -> Path:
    """A run that is still going."""
    path = tmp_path / "live.jsonl"
    write(path, recording.until(BEGUN - 1))
    return path


Visit = Callable[..., Page]


@pytest.fixture
def serving() -> Iterator[Callable[..., Served]]:
    """Start the dashboard; it is stopped when the pages that look at it are closed."""
    started: list[Served] = []

    def start(*journals: Path, port: int = 0) -> Served:
        started.append(serve(*journals, port=port))
        return started[-1]

    yield start
    for dashboard in started:
        dashboard.stop()


@pytest.fixture
def visit(browser: Browser, serving: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Open a page; at the end a picture of it is kept, and it must have complained of nothing nor asked anybody else."""
    pages: list[tuple[Page, list[str], str]] = []

    def open_page(address: str, *, size: dict[str, int] = LAPTOP, forgive: str = "nothing", **context: Any) -> Page:
        page = browser.new_context(viewport=size, **context).new_page()
        wrong: list[str] = []
        page.on(
            "console",
            lambda said: wrong.append(said.text) if said.type in ("error", "warning") and forgive not in said.text else None,
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: wrong.append(f"asked {asked.url}") if not asked.url.startswith(address.partition("#")[0]) else None,
        )
        pages.append((page, wrong, address))
        page.goto(address)
        return page

    yield open_page
    for number, (page, wrong, _) in enumerate(pages):
        with suppress(Exception):
            page.screenshot(path=tmp_path / f"{request.node.name}-{number}.png", full_page=True)
        wrong.extend(re.findall(r"\[object .*|NaN|undefined", page.inner_text("body")))
        page.context.close()
        assert wrong == []


def at_interval(page: Page, interval: int, run: int = 0) -> None:
    expect(page.locator(f".run[data-run='{run}']")).to_have_attribute("data-interval", str(interval))


def value(page: Page, chart: str, column: str) -> Any:
    return page.locator(f"[data-chart={chart}] [data-column={column}] .value")


def milliseconds(seconds: float) -> str:
    """As the page writes them: two digits that count."""
    return f"{float(f'{seconds * 1000:.2g}'):g} ms"


def status(page: Page) -> Any:
    return page.locator(".badge")


def test_the_charts_draw_and_say_what_the_journal_says(visit, serving, finished, recording):
    last = recording.of("observation")[-1]
    summary = recording.records[-1]["summary"]
    dashboard = serving(finished)
    page = visit(dashboard.address)
    expect(status(page)).to_have_text("ended")
    expect(page.locator("h2").first).to_have_text("pipeline")
    expect(value(page, "load", "offered")).to_have_text(f"{last['sources'][0]['rows'] / 30:.0f} rows/s")
    expect(value(page, "size", "hosts")).to_have_text(str(len(last["hosts"])))
    expect(value(page, "size", "replicas")).to_have_text(str(sum(o["replicas"] for o in last["operators"])))
    expect(value(page, "cost", "paid")).to_have_text(f"{summary['core_hours']:.1f} h")
    expect(value(page, "latency", "slo")).to_have_text(milliseconds(last["latency"]["slo_s"]))
    less = round(100 * (1 - summary["core_hours"] / summary["peak_core_hours"]))
    expect(page.locator("[data-chart=cost] .words")).to_contain_text(f"{less} % less than 4 hosts all the time")
    canvases = page.locator("[data-chart] canvas")
    expect(canvases).to_have_count(5)
    for canvas in canvases.all():
        assert canvas.evaluate(COLOURED) > 100
    changes = [decision for decision in recording.of("decision") if decision["change"]]
    expect(page.locator(".decision.change")).to_have_count(len(changes))
    expect(page.locator(".decision.change .what").first).to_have_text(changes[-1]["change"].replace("->", "→"))


def test_the_graph_has_rate_backlog_and_replicas_of_every_operator(visit, serving, finished, recording):
    busiest = max(recording.of("observation"), key=lambda seen: seen["operators"][-1]["backlog_rows"])
    dashboard = serving(finished)
    page = visit(dashboard.address)
    at_interval(page, 29)
    page.locator("#slider").fill(str(busiest["interval"]))
    at_interval(page, busiest["interval"])
    for operator in busiest["operators"]:
        node = page.locator(f"[data-operator={operator['name']}].node")
        expect(node.locator(".replicas")).to_have_text(f"× {operator['replicas']}")
        expect(node.locator(".rate")).to_have_text(f"{operator['processed_rows'] / 30:.0f} rows/s")
        waiting = round(operator["backlog_rows"])
        expect(node.locator(".backlog")).to_have_text(f"{waiting:,} waiting" if waiting else "none waiting")
    expect(page.locator(".edge")).to_have_count(3)


def test_a_run_is_followed_as_it_is_written(visit, serving, live, recording):
    dashboard = serving(live)
    page = visit(dashboard.address)
    at_interval(page, BEGUN - 1)
    expect(status(page)).to_have_text("running")
    expect(page.locator("#connection")).to_have_text("live")
    for interval in (BEGUN, BEGUN + 1, BEGUN + 2):
        begun = len(recording.until(interval - 1))
        write(live, recording.until(interval)[begun:])
        at_interval(page, interval)
        seen = recording.of("observation")[interval]
        expect(value(page, "load", "offered")).to_have_text(f"{seen['sources'][0]['rows'] / 30:.0f} rows/s")
    page.get_by_label("changes only").uncheck()
    expect(page.locator(".decision")).to_have_count(BEGUN + 3)
    expect(page.locator(".decision").first).to_contain_text(recording.of("decision")[BEGUN + 2]["reason"])
    expect(page.locator("[data-chart=load] .words")).to_contain_text("90 rows/s foreseen within 2 min")

    write(live, recording.records[len(recording.until(BEGUN + 2)) :])
    expect(status(page)).to_have_text("ended")
    at_interval(page, 29)


def test_a_shard_is_seen_moving(visit, serving, live, recording):
    interval, operator, shard, old, new = recording.moved()
    write(live, recording.until(interval - 1), mode="w")
    dashboard = serving(live)
    page = visit(dashboard.address, reduced_motion="no-preference")
    at_interval(page, interval - 1)
    cell = page.locator(f".grid[data-operator={operator}] .shard[data-shard='{shard}']")
    expect(cell).to_have_attribute("data-host", old)
    before = cell.bounding_box()
    write(live, recording.until(interval)[len(recording.until(interval - 1)) :])
    expect(cell).to_have_attribute("data-host", new)
    assert cell.evaluate("cell => cell.getAnimations().some(a => a.transitionProperty === 'transform')")
    cell.evaluate("cell => Promise.all(cell.getAnimations().map(a => a.finished)).then(() => null)")
    after, row = cell.bounding_box(), page.locator(f".hosts li[data-host='{new}']").bounding_box()
    assert before is not None
    assert after is not None
    assert row is not None
    assert after["y"] != before["y"]
    assert row["y"] <= after["y"] < row["y"] + row["height"]
    expect(cell).to_have_class("shard moved")
    expect(page.locator(".heat .words")).to_contain_text("moved")
    hosts = shard_hosts(recording.allocation(interval))
    told = page.locator(".heat table tbody tr", has_text=new).locator("td").nth(1)
    expect(told).to_contain_text(f"{hosts['enrich'].count(new)} shard")


def test_batches_that_are_longer_than_intervals_do_not_make_the_page_flicker(visit, serving, recording, tmp_path):
    path = tmp_path / "batches.jsonl"
    records = recording.in_batches(each=5)
    refused = {"who": "bounds", "what": "a fifth host", "why": "four are the limit"}
    for decision in (record for record in records if record["kind"] == "decision" and record["change"]):
        decision["why_not"] = [refused]
    write(path, records, mode="w")
    dashboard = serving(path)
    page = visit(dashboard.address)
    at_interval(page, 29)  # no batch ended in it; one did in the 25th
    recent = [record for record in records if record["kind"] == "observation"][-7:]
    for at, operator in enumerate(recent[-1]["operators"]):
        rate = sum(seen["operators"][at]["processed_rows"] for seen in recent) / 14
        assert rate > 1
        expect(page.locator(f"[data-operator={operator['name']}].node .rate")).to_have_text(f"{rate:.0f} rows/s")
    expect(page.locator(".heat .scale")).to_contain_text(re.compile(r"[1-9]\d* rows/s over 14 s"))
    assert page.locator(".grid .shard").first.evaluate("shard => Number(shard.style.getPropertyValue('--heat'))") > 0
    latency = recent[-5]["latency"]["slo_s"]
    expect(page.locator("[data-figure=latency] dd").first).to_have_text(milliseconds(latency))
    expect(page.locator("[data-figure=latency] .more")).to_have_text("p90, 8 s ago; SLO 5 s")
    expect(page.locator("[data-chart=latency] .words")).to_contain_text(f"p90 was {milliseconds(latency)}, 8 s before")
    expect(page.locator(".decision.change").first).to_contain_text("why not a fifth host: four are the limit (bounds)")


def estimates(**values: tuple[float, float]) -> dict[str, Any]:
    return {name: {"value": value, "error": error} for name, (value, error) in values.items()}


DEAR = estimates(
    driver_s=(0.3184, 0.02918), batch_s=(0.08195, 0.03681), task_s=(0.07545, 0.07338), shard_s=(0.06848, 0.02494),
    row_s=(0.00304, 0.0005984), skew=(1.171, 0.7115),
)  # fmt: skip
CHEAP = DEAR | estimates(row_s=(0.000012, 0.0000011), skew=(1.0, 0.002238))


def cost(page: Page, part: str, operator: str) -> Any:
    return page.locator(f".costs [data-cost={part}] [data-operator={operator}]")


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_a_table_says_what_a_batch_costs_and_hosts_say_how_busy_they_are(visit, serving, recording, tmp_path, size):
    path = tmp_path / "costs.jsonl"
    write(
        path, recording.with_costs({"parse": CHEAP | {"batches": 120.0}, "enrich": DEAR | {"batches": 9.571}}, 0.93), mode="w"
    )
    dashboard = serving(path)
    page = visit(dashboard.address, size=size)
    at_interval(page, 29)
    table = page.locator(".costs table")
    expect(table.locator("caption")).to_have_text("What a batch costs, ± standard error")
    expect(table.locator("thead th")).to_have_text(["parse", "enrich"])  # aggregate has no costs
    headings = ["driver, ms", "per batch, ms", "per task, ms", "per shard, ms", "per row, ms", "skew", "from batches"]
    expect(table.locator("tbody th")).to_have_text(headings)
    expect(cost(page, "driver_s", "enrich")).to_have_text("318 ± 29")
    expect(cost(page, "batch_s", "enrich")).to_have_text("82 ± 37")
    expect(cost(page, "task_s", "enrich")).to_have_text("75 ± 73")
    expect(cost(page, "shard_s", "enrich")).to_have_text("68 ± 25")
    expect(cost(page, "shard_s", "parse")).to_be_empty()  # it is not keyed
    expect(cost(page, "row_s", "enrich")).to_have_text("3.04 ± 0.60")
    expect(cost(page, "skew", "enrich")).to_have_text("1.17 ± 0.71")
    expect(cost(page, "skew", "parse")).to_have_text("1.000 ± 0.002")
    expect(cost(page, "batches", "parse")).to_have_text("120")
    running = page.locator(".hosts li[data-state=running]").first
    expect(running.locator(".busy")).to_have_text("93 % busy")
    expect(running.locator(".busy")).to_be_visible()
    expect(running.locator(".hostname")).to_be_visible()
    expect(running).to_have_attribute("title", re.compile(r"utilisation .* %, busy 93 %$"))
    assert page.evaluate(WIDER) == 0


def test_rows_that_take_less_than_a_millisecond_are_told_in_microseconds(visit, serving, recording, tmp_path):
    path = tmp_path / "costs.jsonl"
    write(path, recording.with_costs({"enrich": CHEAP | {"batches": 0.0}}, 0.93), mode="w")
    dashboard = serving(path)
    page = visit(dashboard.address)
    at_interval(page, 29)
    expect(page.locator(".costs [data-cost=row_s] th")).to_have_text("per row, µs")
    expect(cost(page, "row_s", "enrich")).to_have_text("12.0 ± 1.1")
    expect(cost(page, "batches", "enrich")).to_have_text("0")


def test_what_a_journal_does_not_say_of_costs_is_not_drawn(visit, serving, finished, recording, tmp_path):
    old = tmp_path / "old.jsonl"
    write(old, recording.older(), mode="w")
    for journal in (finished, old):
        dashboard = serving(journal)
        page = visit(dashboard.address)
        at_interval(page, 29)
        expect(page.locator(".node.operator")).to_have_count(3)
        expect(page.locator(".costs")).to_be_hidden()
        expect(page.locator(".hosts li").first.locator(".state")).to_have_text(re.compile("%$"))
        expect(page.locator(".hosts li").first.locator(".busy")).to_be_hidden()
    expect(page.locator(".hosts li").first).to_have_attribute("title", re.compile(r"utilisation .* %$"))


def test_controls_ask_first_and_are_written_beside_the_journal(visit, serving, live, recording):
    wishes = live.with_name("live.jsonl.controls")
    dashboard = serving(live)
    page = visit(dashboard.address)
    at_interval(page, BEGUN - 1)
    assert "token" not in page.url
    page.get_by_role("button", name="Pin the replicas of aggregate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert not wishes.exists()

    page.get_by_role("button", name="Pin the replicas of aggregate").click()
    dialog.get_by_label("Replicas").fill("7")
    dialog.get_by_role("button", name="Pin", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#said")).to_contain_text("pin aggregate to 7 replicas")
    page.get_by_role("button", name="Drain host-0").click()
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(page.locator("#said")).to_contain_text("drain host-0")
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog.get_by_role("button", name="Pause").click()
    expect(page.locator("#said")).to_contain_text("pause")
    asked = [json.loads(line) for line in wishes.read_text().splitlines()]
    assert [(wish["do"], wish["operator"], wish["host"], wish["replicas"]) for wish in asked] == [
        ("pin", "aggregate", None, 7),
        ("drain", None, "host-0", None),
        ("pause", None, None, None),
    ]

    # Only what the run has journalled is shown as done.
    expect(page.locator(".node.pinned")).to_have_count(0)
    done = {"kind": "control", "time_s": 30.0 * BEGUN, "interval": BEGUN - 1, "note": ""}
    write(live, [{**done, **wish} for wish in asked])
    expect(page.locator(".node.pinned")).to_have_attribute("data-operator", "aggregate")
    expect(page.locator(".hosts .draining")).to_have_attribute("data-host", "host-0")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.locator(".decision.control")).to_have_count(3)
    expect(page.locator(".decision.control").first).to_contain_text("by hand")


def test_controls_without_the_token_are_refused_in_words(visit, serving, live):
    dashboard = serving(live)
    page = visit(dashboard.plain, forgive="401")
    at_interval(page, BEGUN - 1)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    refused = page.get_by_role("dialog").get_by_role("alert")
    expect(refused).to_contain_text("Refused")
    expect(refused).to_contain_text("token")
    assert not live.with_name("live.jsonl.controls").exists()


def test_controls_of_a_run_that_has_ended_say_why_they_are_off(visit, serving, finished):
    dashboard = serving(finished)
    page = visit(dashboard.address)
    at_interval(page, 29)
    pause = page.get_by_role("button", name="Pause", exact=True)
    expect(pause).to_have_attribute("aria-disabled", "true")
    expect(page.locator(".why-off")).to_contain_text("the run has ended")
    pause.click(force=True)
    expect(page.locator("#said")).to_contain_text("the run has ended")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_page_comes_back_with_the_server(visit, serving, live, recording):
    first: Served = serving(live)
    page = visit(first.address, forgive="net::ERR_")
    at_interval(page, BEGUN - 1)
    first.stop()
    expect(page.locator("#connection")).to_contain_text("reconnecting")
    expect(page.locator("#problems")).to_contain_text("does not answer")
    write(live, recording.until(BEGUN + 3)[len(recording.until(BEGUN - 1)) :])
    serving(live, port=first.port)
    expect(page.locator("#connection")).to_have_text("live", timeout=40_000)
    at_interval(page, BEGUN + 3)
    expect(page.locator("#problems")).to_be_empty()


def test_a_run_is_scrubbed_with_the_keyboard(visit, serving, finished, recording):
    dashboard = serving(finished)
    page = visit(dashboard.address)
    at_interval(page, 29)
    slider = page.get_by_role("slider", name="Interval shown")
    slider.focus()
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("Home")
    at_interval(page, 0)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    at_interval(page, 3)
    expect(slider).to_have_attribute("aria-valuetext", "00:02:00, interval 3 of 29")
    first = recording.of("observation")[3]
    expect(page.locator("[data-figure=load] dd").first).to_have_text(f"{first['sources'][0]['rows'] / 30:.0f} rows/s")
    expect(page.get_by_role("button", name="At the end")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("End")
    at_interval(page, 29)

    change = next(decision for decision in recording.of("decision") if decision["change"])
    item = page.locator(".decision.change").last
    item.get_by_role("button").focus()
    page.keyboard.press("Enter")
    at_interval(page, change["interval"])
    expect(item).to_have_attribute("aria-current", "true")

    page.get_by_role("button", name="Play the run").click()
    expect(page.get_by_role("button", name="Stop playing")).to_be_visible()
    further = "|".join(str(interval) for interval in range(change["interval"] + 2, 30))
    expect(page.locator(".run")).to_have_attribute("data-interval", re.compile(f"^({further})$"))
    page.get_by_role("button", name="Stop playing").click()
    page.get_by_role("button", name="At the end").click()
    at_interval(page, 29)


def test_a_part_of_the_run_is_chosen_with_the_mouse(visit, serving, finished):
    dashboard = serving(finished)
    page = visit(dashboard.address)
    at_interval(page, 29)
    plot = page.locator("[data-chart=load] .u-over")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 40, steps=4)
    page.mouse.up()
    expect(page.locator("#window")).to_have_value("chosen")
    at_interval(page, 29)  # a drag chooses no moment
    plot.dblclick()
    expect(page.locator("#window")).to_have_value("")


def test_a_long_run_is_thinned_out_but_its_figures_are_not(visit, serving, tmp_path):
    springtide("simulate", "generator:bursty-day", "--to", 45_000, "-p", "static", "--journal", "long.jsonl", folder=tmp_path)
    seen = Recording(tmp_path / "long.jsonl").of("observation")
    dashboard = serving(tmp_path / "long.jsonl")
    page = visit(dashboard.address)
    at_interval(page, 1499)
    page.get_by_label("changes only").uncheck()
    expect(page.locator(".decision")).to_have_count(50)
    page.get_by_role("button", name="Older decisions").click()
    expect(page.locator(".decision")).to_have_count(100)
    page.locator("#slider").fill("777")
    at_interval(page, 777)
    expect(page.locator("[data-figure=load] dd").first).to_have_text(f"{seen[777]['sources'][0]['rows'] / 30:,.0f} rows/s")
    expect(value(page, "load", "offered")).to_have_text(f"{seen[777]['sources'][0]['rows'] / 30:,.0f} rows/s")
    expect(page.locator(".scrub .time")).to_have_text("06:29:00 of 12:30:00, interval 777 of 1,499")
    expect(page.locator(".decision").first).to_have_attribute("data-interval", "777")
    expect(page.locator(".decision").first).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Back to the newest").click()
    expect(page.locator(".decision").first).to_have_attribute("data-interval", "1499")


def test_a_week_is_drawn_soon_after_it_is_asked_for(visit, serving, tmp_path):
    dashboard = serving(write_week(tmp_path / "week.jsonl"))
    began_s = time.perf_counter()
    page = visit(dashboard.address)
    at_interval(page, 19_999)
    drawn = page.locator("[data-chart=load] canvas")
    assert drawn.evaluate(COLOURED) > 100
    took_s = time.perf_counter() - began_s
    print(f"{took_s:.2f} s from the address to the charts")
    expect(page.locator("[data-figure=load] dd").first).to_have_text(re.compile("rows/s$"))
    assert took_s < 5 * 2.0  # by the clock on the wall: others may be busy on this machine


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(visit, serving, finished, size, theme):
    dashboard = serving(finished)
    page = visit(dashboard.address, size=size, color_scheme=theme)
    at_interval(page, 29)
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    assert page.evaluate(WIDER) == 0
    for section in ("Application", "Hosts and shards", "Latency against the SLO", "Decisions"):
        expect(page.get_by_role("heading", name=section)).to_be_visible()


def test_two_journals_stand_side_by_side(visit, serving, finished, recording):
    other = finished.with_name("other.jsonl")
    dashboard = serving(finished, other)
    page = visit(dashboard.address)
    at_interval(page, 29, run=0)
    at_interval(page, 29, run=1)
    left, right = (page.locator(f".run[data-run='{run}']").bounding_box() for run in (0, 1))
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    assert page.evaluate(WIDER) == 0
    summary = recording.records[-1]["summary"]
    line = page.locator("#comparison li[data-run='0']")
    expect(line).to_contain_text(f"local-thresholds on pipeline {summary['core_hours']:.1f} core-hours")
    expect(line).to_contain_text(f"{summary['decisions_with_change']} changes")
    page.locator("#slider").fill("12")
    at_interval(page, 12, run=0)
    at_interval(page, 12, run=1)


def test_every_state_is_shown_as_such(visit, serving, recording, tmp_path):
    path = tmp_path / "states.jsonl"
    path.touch()
    dashboard = serving(path)
    page = visit(dashboard.address)
    expect(status(page)).to_have_text("empty")
    expect(page.locator(".notice")).to_contain_text("Nothing in this journal yet")
    write(path, recording.records[:1])
    expect(status(page)).to_have_text("starting")
    expect(page.locator(".node.operator")).to_have_count(3)
    write(path, recording.until(3)[1:])
    expect(status(page)).to_have_text("running")
    at_interval(page, 3)
    with path.open("a") as file:
        file.write("this is no record\n")
    expect(status(page)).to_have_text("failed")
    expect(page.locator(".notice")).to_contain_text("cannot be read further")


def test_a_run_that_went_silent_is_stale(visit, serving, live):
    long_ago = live.stat().st_mtime - 3600
    os.utime(live, (long_ago, long_ago))
    dashboard = serving(live)
    page = visit(dashboard.address)
    expect(status(page)).to_have_text("stale")
    at_interval(page, BEGUN - 1)


def test_the_theme_is_remembered(visit, serving, finished):
    dashboard = serving(finished)
    page = visit(dashboard.address, color_scheme="light")
    page.get_by_role("radio", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("radio", name="Auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
