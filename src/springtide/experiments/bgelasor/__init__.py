"""The evaluation of BGElasor (Mu et al. 2019): errors of forecasts, and what adaptation costs."""

from __future__ import annotations

from springtide.experiments.bgelasor import prediction, prediction_page, scheduling, scheduling_page
from springtide.experiments.study import Experiment, Study

_INTRODUCTION = """
The paper has two halves: a predictor of input rates, a network of bidirectional gated recurrent units (BiGRU), judged on three
loads (Table 1); and CBA, which plans an operator's instances ahead so that running, starting, stopping and re-routing them
costs little, judged against a reactive algorithm (SREA) and one that looks one epoch ahead (SPEA) by cost (Figure 4),
adaptation frequency and latency (Figure 5). Figures 4 and 5 have no numbers in the text; what the prose says of them is
checked here.

* **Loads.** The periodic and the fluctuating load are the paper's own recordings, 60 days in intervals of 5 and 10 minutes, 40
  days to train, 10 to validate, the rest to test. The stable one was not published.
* **Cluster.** Seven machines of 36 cores run instances of one operator. An instance is a core, and processes 8,000 rows/s (the
  text uses p = 8,000 for the price of an instance and, in Algorithm 1, for its capability). Both loads are scaled to a mean of
  67,000 rows/s, which the periodic one has. Instances start and stop at once. Rows that have waited for 10 s are discarded: the
  paper's system "quickly" discards input, and the text does not say how quickly.
* **Decisions** are made once an epoch, an interval of the recording; the text does not say how long an epoch is.
* **`tide`** has the usual objective, 90 % of rows within 5 s, of whose late rows half may be used up (`spend`), and its
  defaults otherwise. It rents single cores: they are its instances.
"""

STUDY = Study(
    name="bgelasor",
    title="BGElasor: forecasts by neural networks, and adaptation at low cost",
    reference=(
        "W. Mu, Z. Jin, J. Wang, W. Zhu, W. Wang. BGElasor: Elastic-Scaling Framework for Distributed Streaming Processing "
        "with Deep Neural Network. 16th IFIP International Conference on Network and Parallel Computing (NPC), 2019, "
        "pp. 120-131."
    ),
    introduction=_INTRODUCTION,
    experiments=(
        Experiment(name="prediction", runs=prediction.runs, run=prediction.run, sections=prediction_page.sections),
        Experiment(name="scheduling", runs=scheduling.runs, run=scheduling.run, sections=scheduling_page.sections),
    ),
)
