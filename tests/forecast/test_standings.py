"""How models stand: means, spreads, shares of ARIMA's errors, the paper's figures, and who is best."""

import pytest

from springtide.forecast.evaluation import Score
from springtide.forecast.standings import PAPER, Judged, standings, verdicts


def judged(model: str, rmse: float, repetition: int = 0, coverage: float | None = None) -> Judged:
    score = Score(distance=12, rates=100, rmse=rmse, mae=rmse / 2, coverage=coverage)
    return Judged(series="bgelasor_periodic", model=model, repetition=repetition, scores=(score,))


def test_repetitions_become_a_mean_and_a_spread_beside_arima_and_the_paper() -> None:
    found = standings(
        "bgelasor_periodic", [judged("arima", 0.5), judged("bigru", 0.2), judged("bigru", 0.3, 1)], {"bigru": 7.0}
    )

    bigru = next(one for one in found if one.model == "bigru")
    assert bigru.repetitions == 2
    assert bigru.seconds == 7.0
    assert bigru.errors[0].rmse == pytest.approx(0.25)
    assert bigru.errors[0].rmse_spread == pytest.approx(0.0707, abs=1e-4)
    assert bigru.errors[0].of_arima == pytest.approx(0.5)
    assert bigru.paper == pytest.approx((0.490, 0.341, 0.490 / 1.252))


def test_the_paper_s_shares_are_those_of_its_table() -> None:
    assert PAPER["periodic"]["bigru"][0] / PAPER["periodic"]["arima"][0] == pytest.approx(0.39, abs=0.005)
    assert PAPER["fluctuating"]["bigru"][0] / PAPER["fluctuating"]["arima"][0] == pytest.approx(0.58, abs=0.005)


def test_the_mixture_is_compared_with_the_best_single_model() -> None:
    found = standings("x", [judged("arima", 0.5), judged("svr", 0.4), judged("auto", 0.42, coverage=0.91)], {})

    (verdict,) = verdicts(found)

    assert verdict.best == "svr"
    assert verdict.of_arima == pytest.approx(0.8)
    assert verdict.auto_of_best == pytest.approx(1.05)
    assert verdict.auto_coverage == pytest.approx(0.91)


def test_nothing_is_said_of_how_much_worse_than_no_error_an_error_is() -> None:
    found = standings("x", [judged("last-value", 0.0), judged("auto", 0.01)], {})

    assert verdicts(found)[0].auto_of_best is None


def test_a_series_of_another_name_is_not_the_paper_s() -> None:
    assert standings("clicks", [judged("bigru", 0.2)], {})[0].paper is None
