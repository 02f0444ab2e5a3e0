"""The study of BGElasor: its loads and world, what its page makes of figures, and what the quick variant shows."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from published import assert_as_published

from springtide.experiments.bgelasor import STUDY, loads, prediction, prediction_page, scheduling, scheduling_page, world
from springtide.experiments.bgelasor.learning import said_ahead
from springtide.experiments.running import attempt
from springtide.experiments.study import Claim, Finding, Run
from springtide.forecast.models.registry import make_model
from springtide.model.decision import Decision
from springtide.plan.cost.model import total_cost
from springtide.sweeping.in_turn import run_in_turn
from springtide.workload.traces import Trace


@pytest.fixture
def no_recordings(monkeypatch, tmp_path):
    monkeypatch.setenv("SPRINGTIDE_DATA", str(tmp_path))


@dataclass
class Watching:
    """A policy that keeps what it sees, and changes nothing."""

    views: list = field(default_factory=list)

    def start(self):
        return None

    def decide(self, view, memory):
        self.views.append(view)
        return Decision(planned=view.requested, reason="hold"), memory


def small_load(rates, filled=()):
    """Rates of hours: long enough for a few windows."""
    flags = np.zeros(len(rates), np.bool_)
    flags[list(filled)] = True
    return loads.Load(
        name="periodic",
        origin=loads.MADE_UP,
        interval_s=3600.0,
        start="2024-01-01T00:00:00",
        rates_per_s=np.asarray(rates, np.float64),
        filled=flags,
    )


def hours(days):
    return 67_000.0 + 30_000.0 * np.sin(np.arange(24 * days) * 2 * np.pi / 24)


class TestLoads:
    def test_every_load_is_there_without_recordings(self, no_recordings):
        for name in loads.LOADS:
            load = loads.load_named(name)
            assert load.origin == loads.MADE_UP
            assert len(load.rates_per_s) * load.interval_s == 60 * 86_400
            assert load.rates_per_s.min() >= 0

    def test_parts_are_those_of_the_paper(self):
        bounds = small_load(hours(61)).bounds
        assert (bounds.validation, bounds.test, bounds.end) == (40 * 24, 50 * 24, 61 * 24)

    def test_what_was_filled_is_neither_learnt_nor_judged_by(self):
        load = small_load(hours(60), filled=[55 * 24])
        test = load.windows("test")
        assert np.isnan(test.future).any()
        assert not np.isnan(test.past).any()
        assert not np.isnan(load.windows("train").future).any()

    def test_a_load_has_the_mean_that_is_wanted(self):
        assert small_load(hours(60)).with_mean(10.0).rates_per_s.mean() == pytest.approx(10.0)


class TestWorld:
    def test_the_optimum_is_the_cheapest_of_all_timetables_that_are_enough(self):
        chance = np.random.default_rng(1)
        for _ in range(20):
            least = tuple(chance.integers(1, 4, size=6).tolist())
            enough = [
                numbers
                for numbers in product(range(1, 4), repeat=6)
                if numbers[0] == least[0] and all(n >= need for n, need in zip(numbers, least, strict=True))
            ]
            found = world.optimum(least)
            assert total_cost(found, world.PRICES) == min(total_cost(numbers, world.PRICES) for numbers in enough)
            assert all(n >= need for n, need in zip(found, least, strict=True))

    def test_a_timetable_is_followed_and_enough(self):
        load = small_load(hours(60))
        scene = scheduling._Scene(load=load, trace=world.tested(load, 2), models=None)
        least = world.needs(scene.trace)
        best = world.optimum(least)
        told = scene.told(world.Timetable(numbers=best))
        assert told["cost"] == total_cost(best, world.PRICES)
        assert told["short_epochs"] == 0
        assert told["late_share"] == pytest.approx(0.0, abs=1e-9)

    def test_headroom_has_more_instances(self):
        load = small_load(hours(60))
        scene = scheduling._Scene(load=load, trace=world.tested(load, 1), models=None)
        few, many = (scene.told(scene.of_paper("CBA", headroom=factor))["mean_instances"] for factor in (1.0, 1.5))
        assert many > 1.2 * few

    def test_the_papers_algorithms_see_the_input_and_what_one_model_says_of_it(self):
        load = small_load(hours(60))
        scene = scheduling._Scene(load=load, trace=world.tested(load, 1), models=None)
        ahead = np.arange(24 * 3.0).reshape(24, 3)

        def views(waiting):
            watched = Watching()
            scene.told(world.Shown(policy=watched, ahead_rows_per_s=ahead, headroom=2.0, waiting=waiting), world.WAITING)
            return watched.views

        for waiting, most in ((False, 0.0), (True, 1e6)):
            shown = views(waiting)
            assert shown[5].forecast.mean["source"].tolist() == (2.0 * ahead[5]).tolist()
            assert shown[5].demand_rows_per_s["preprocess"] == pytest.approx(2.0 * scene.trace.counts[5] / 3600.0)
            backlog = max(view.observation.operators["preprocess"].backlog_rows for view in shown)
            assert backlog == 0.0 if not waiting else backlog > most

    def test_what_a_model_says_begins_after_the_epoch_just_seen(self):
        load = small_load(hours(60))
        last = make_model("last-value").fit(load.windows("train"), load.windows("validation"), 0)
        said = said_ahead(load, last, epochs=5, steps=3)
        seen = load.rates_per_s[load.bounds.test : load.bounds.test + 5]
        assert said == pytest.approx(np.repeat(seen[:, None], 3, axis=1))

    def test_instances_beyond_the_first_step_are_counted_and_how_many_were_needed(self):
        """The input is foreseen to stay: the second epoch has two instances too many, of which the third needs one."""
        trace = Trace(name="steps", step_s=3600.0, counts=np.array([3.0, 3.0, 4.0, 3.0]) * 3600.0 * world.CAPABILITY_ROWS_PER_S)
        ahead = np.full((4, 6), 3.0 * world.CAPABILITY_ROWS_PER_S)
        scene = scheduling._Scene(load=small_load(hours(60)), trace=trace, models=None, ahead_rows_per_s=ahead)
        assert scene.kept([3, 5, 4, 3]) == {"kept": 3, "kept_and_needed": 2}
        assert scene.kept([3, 3, 3, 3]) == {"kept": 0, "kept_and_needed": 0}

    def test_the_same_run_twice_finds_the_same(self, no_recordings, monkeypatch):
        monkeypatch.setattr(scheduling, "load_named", lambda name: small_load(hours(60)))
        monkeypatch.setattr(scheduling, "can_learn", lambda model: False)
        first, second = (scheduling.run({"load": "periodic", "days": 2}, 0) for _ in range(2))
        assert first == second
        assert first["forecast"] == ""


def scores(rmse):
    return [{"distance": d, "rates": 100, "rmse": rmse * d, "mae": rmse * d / 2} for d in (1, 12, 288)]


def predicted(load="periodic", **rmse):
    return [
        Finding(
            run=Run(paper="bgelasor", experiment="prediction", parameters={"load": load, "model": model}),
            found={"origin": loads.RECORDED, "interval_s": 300.0, "scores": scores(value)}
            | ({"from_one_origin": scores(value)[2]} if model == "arima" else {}),
        )
        for model, value in rmse.items()
    ]


def claim(sections, *words, ends="") -> Claim:
    claims = [c for section in sections for c in section.claims]
    found = [c for c in claims if all(word in c.says for word in words) and c.says.endswith(ends)]
    assert len(found) == 1, words
    return found[0]


class TestTable1:
    def test_a_better_network_makes_claims_hold(self):
        found = prediction_page.sections(predicted(arima=1.0, svr=0.8, gru=0.5, bigru=0.4, auto=0.3))
        assert claim(found, "less than ARIMA").holds
        assert claim(found, "less than SVR").holds
        assert claim(found, "BiGRU errs least").holds
        assert claim(found, "mixture").holds

    def test_a_worse_one_is_told_with_its_reason(self):
        found = prediction_page.sections(predicted(arima=1.0, svr=0.45, gru=0.5, bigru=0.4, auto=0.6))
        assert not claim(found, "less than SVR").holds
        assert claim(found, "BiGRU errs least").holds
        assert not claim(found, "mixture").holds
        worst = prediction_page.sections(predicted("fluctuating", arima=1.0, bigru=1.1, auto=1.0))
        assert not claim(worst, "BiGRU errs less than ARIMA").holds

    def test_without_jax_the_page_says_so(self):
        missing = Finding(
            run=Run(paper="bgelasor", experiment="prediction", parameters={"load": "periodic", "model": "bigru"}),
            found={"problem": "BiGRU needs jax and optax: pip install 'springtide[neural]'"},
        )
        (section,) = prediction_page.sections([*predicted(arima=1.0, auto=0.9), missing])
        assert "needs jax" in section.text
        assert all("BiGRU" not in row[0] for table in section.tables for row in table.rows)


def told(cost=100.0, late=0.1, **other):
    return {
        "cost": cost,
        "running_cost": 0.9 * cost,
        "changing_cost": 0.1 * cost,
        "changes": 10,
        "instances_changed": 20,
        "mean_instances": 9.0,
        "short_epochs": 5,
        "latency_mean_s": 10 * late,
        "latency_p50_s": 0.0,
        "latency_p90_s": late,
        "latency_p99_s": late,
        "late_share": late,
        "discarded_share": 0.0,
        "shown_instances": [8, 9],
        "shown_latency_s": [0.001, 0.001],
    } | other


def scheduled(**changed):
    """Figures with which every claim holds, but for those that are changed."""
    few, many = {"changes": 5, "instances_changed": 9}, {"changes": 20, "instances_changed": 40}
    algorithms = {
        "SREA": told(90.0, 0.4, **many),
        "SPEA": told(100.0, 0.3),
        "CBA": told(98.0, 0.2, **few),
        "tide": told(95.0, 0.05),
        "optimum": told(90.0, 0.0),
        "SPEA, rates known": told(100.0, 0.0),
        "CBA, rates known": told(98.0, 0.0),
        "SREA, all rows wait": told(90.0, 0.4),
        "SPEA, all rows wait": told(100.0, 0.3),
        "CBA, all rows wait": told(98.0, 0.2),
        "CBA with headroom": told(110.0, 0.04),
    } | changed
    run = Run(paper="bgelasor", experiment="scheduling", parameters={"load": "periodic", "days": 2})
    found = {
        "origin": loads.RECORDED,
        "interval_s": 300.0,
        "epochs": 576,
        "forecast": "bigru",
        "mean_need": 8.5,
        "most_needed": 17,
        "headroom": 1.2,
        "first_shown": 0,
        "rows_per_s": [64_000, 70_000],
        "algorithms": algorithms,
    }
    return scheduling_page.sections([Finding(run=run, found=found)])


class TestFigures4And5:
    def test_every_claim_can_hold(self):
        claims = [c for section in scheduled() for c in section.claims]
        assert all(c.holds for c in claims)
        assert not any(c.why for c in claims)

    def test_claims_follow_the_figures(self):
        assert not claim(scheduled(**{"CBA, rates known": told(101.0)}), "planned for").holds
        assert not claim(scheduled(CBA=told(101.0, 0.2)), "forecasts err").holds
        kept = claim(scheduled(CBA=told(101.0, 0.2, kept=8, kept_and_needed=4)), "forecasts err")
        assert "of 8 that CBA kept for an epoch 50% were" in kept.why
        assert not claim(scheduled(SREA=told(99.0, 0.4)), "cost more than SREA").holds
        assert not claim(scheduled(SREA=told(90.0, 0.1)), "SREA's latency is the worst", ends="worst").holds
        assert not claim(scheduled(tide=told(99.0, 0.05)), "tide costs less than CBA, at").holds
        assert not claim(scheduled(tide=told(95.0, 0.25)), "tide costs less than CBA, at").holds
        assert not claim(scheduled(tide=told(111.0, 0.05)), "headroom").holds

    def test_pictures_can_be_drawn(self, tmp_path):
        for section in scheduled():
            for picture in section.pictures:
                picture.draw(tmp_path / f"{picture.name}.png")
                assert (tmp_path / f"{picture.name}.png").stat().st_size > 0


def test_runs_are_named_once_and_the_quick_ones_are_few():
    assert len(STUDY.runs(quick=True)) < len(STUDY.runs(quick=False))
    full = [(run.experiment, tuple(run.parameters.items()), run.seed) for run in STUDY.runs(quick=False)]
    assert len(set(full)) == len(full)
    assert prediction.REPETITIONS > 1


@pytest.fixture(scope="module")
def quick():
    """Every finding of the quick variant."""
    if any(loads.load_named(name).origin == loads.MADE_UP for name in ("periodic", "fluctuating")):
        pytest.skip("the paper's recordings are not at hand")
    outcomes = run_in_turn(STUDY.runs(quick=True), attempt, lambda _: None)
    assert all(isinstance(outcome, Finding) for outcome in outcomes), outcomes
    return outcomes


@pytest.mark.full
class TestQuickVariant:
    def test_every_claim_is_as_published(self, quick):
        assert_as_published("bgelasor", [c for section in STUDY.sections(quick) for c in section.claims])

    @pytest.mark.parametrize("load", ["periodic", "fluctuating"])
    def test_what_the_paper_says_of_its_algorithms(self, quick, load):
        found = STUDY.sections(quick)
        assert claim(found, load, "CBA costs less than SPEA", "planned for").holds
        assert claim(found, load, "cost more than SREA").holds
        assert claim(found, load, "CBA changes the number of instances less").holds
        assert claim(found, load, "SREA starts and stops more instances").holds
        assert claim(found, load, "SREA's latency is the worst", ends="worst").holds
        assert claim(found, load, "SREA's latency is the worst", ends="no row is discarded").holds
        assert claim(found, load, "CBA's latency is the best").holds

    def test_cba_costs_less_than_spea_where_the_forecast_is_good_enough(self, quick):
        found = STUDY.sections(quick)
        assert claim(found, "periodic", "CBA costs less than SPEA", "forecasts err").holds
        dearer = claim(found, "fluctuating", "CBA costs less than SPEA", "forecasts err")
        assert not dearer.holds
        assert "that CBA kept for an epoch" in dearer.why

    @pytest.mark.parametrize("load", ["periodic", "fluctuating"])
    def test_nothing_that_is_always_enough_costs_less_than_the_optimum(self, quick, load):
        (found,) = (f.found for f in quick if f.run.experiment == "scheduling" and f.run.parameters["load"] == load)
        best = found["algorithms"]["optimum"]
        assert best["short_epochs"] == 0
        enough = [told["cost"] for told in found["algorithms"].values() if told["short_epochs"] == 0]
        assert min(enough) == best["cost"]

    def test_tide_beside_cba(self, quick):
        found = STUDY.sections(quick)
        for load in ("periodic", "fluctuating"):
            assert claim(found, load, "tide costs less than CBA with the headroom").holds
            assert claim(found, load, "tide keeps an objective").holds

    def test_table_1(self, quick):
        found = STUDY.sections(quick)
        assert claim(found, "periodic", "neural networks err less than ARIMA").holds
        assert claim(found, "periodic", "BiGRU errs least").holds
        assert not claim(found, "fluctuating", "BiGRU errs less than ARIMA").holds
