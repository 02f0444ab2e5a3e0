"""PSPS 2022 (Wladdimiro et al.): predicted replicas and load-balancing grouping, against Storm and DABS-Storm, run again."""

from __future__ import annotations

from springtide.experiments.psps.applications import APPLICATIONS
from springtide.experiments.psps.tweets import TWEETS
from springtide.experiments.study import Study

_INTRODUCTION = """
The paper runs PSPS on Storm, on seven hosts of 8 cores, and compares parameters, groupings, Storm with fixed replicas and
DABS-Storm by four metrics: saved resources (1 - r / r_over, r the active replicas), throughput degradation (the mean over time
intervals of the difference of input and output rate, over the input rate), the share of received events that are processed (its
"Diff. Proc. Events"), and the mean end-to-end latency of processed events. Here all of it runs in the simulator, with replicas
that are switched on and off at once.

What the text gives is used as it stands: hosts, td, t_out, q_size, r and r_over. What it does not give was chosen:

* **Rates.** Tweets about COVID-19 per minute, as in the paper though of another collection (17 March to 8 April 2020), an hour
  of them in a minute, over 1,080 s; of all stretches the one whose rate goes up and down most, smoothed by a moving mean over
  60 s. Its mean is 0.37 of its peak; the paper's figures of r = 1 and PSPS fit 0.38. Without the recordings a generated day
  with bursts stands in: the field `origin` of the results says which it was. Arrivals are Poisson.
* **Peak and execution times.** 4,000 rows/s and 2 ms in each of four operators, so that the peak needs the 8 replicas of
  r_over = 32. This fits Table VI: with a queue of 100 rows the latency is 30 ms, so it empties at about 3,300 rows/s.
* **The pool of replicas.** As many of each operator as there are cores for: 14 of four operators, 7 of eight.
* **The start.** The replicas that equation 1 gives the rate of the first 30 s.

The simulator has no overhead per tuple but its execution time, and steps of 50 ms. Where the paper's Storm takes 32 ms to
154 ms without any queue, rows take 5 ms to 9 ms here.

`tide` may hold up to r_over cores, in pieces of two that it takes and gives back at once. It is told that changes are free
(`change_s = 0`, `changes_per_hour = 240`) and plans for the next interval (`horizon_s = td`). Its objective is that nine rows
in ten take at most 10 s, or half of the time-out, and it may use all of that up (`spend = 1`), as PSPS keeps no reserve either.
That was chosen with results in sight: with 5 s it saved less and was sooner, with 15 s the other way round; pieces of 1 and 4
cores saved less. It has Storm's shuffle grouping, because load balancing is a part of PSPS; Table VII has both. tide puts two
replicas on a core, so what counts as r is the cores that active replicas may use at once: on the paper's hosts that is the
number of replicas. The last columns of all tables show both.
"""

STUDY = Study(
    name="psps",
    title="PSPS: a predictive approach for dynamic replication of operators",
    reference="D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo. A predictive approach for dynamic replication of operators in "
    "distributed stream processing systems. IEEE 34th International Symposium on Computer Architecture and High Performance "
    "Computing (SBAC-PAD), 2022, pp. 120-129.",
    introduction=_INTRODUCTION,
    experiments=(TWEETS, APPLICATIONS),
)
