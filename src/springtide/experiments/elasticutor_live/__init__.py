"""Elasticutor's figures 6, 7, 8 and 16 on real Spark, at a small scale: see `world` for the setting, `trial` for a run."""

from __future__ import annotations

from springtide.experiments.elasticutor_live import exchange, reassignment, shuffles, world
from springtide.experiments.elasticutor_live.cluster import cluster
from springtide.experiments.study import Study

_INTRODUCTION = f"""
The same as in [elasticutor.md](elasticutor.md) where it can be done on one machine: real Structured Streaming queries on real
executors, with the policies in charge as in `springtide run`. **All figures of this page are measured, one run each, so they
are not the same in a rerun**: two runs of one setting differ by some 10 %, and by more if the machine is busy. Only what stands
under `found` in the results is the same every time; `load_before` is the machine's load when a run began.

* {world.HOSTS} executors (hosts) with {world.CORES} slots each, which stay, as the paper's cluster does: cores move between
  elastic executors, hosts do not. An operator has {world.SHARDS} shards, and elastic executors are {world.EXECUTORS}.
* **Rows wait** for {world.ROW_S * 1000:g} ms each, as for a service, and use no processor: this machine has fewer cores than
  slots.
* Rows come in micro-batches of {world.ROWS_PER_BATCH} at most. A batch takes one to several seconds, of which about one is
  Spark's own; a change takes effect with the next. The paper's system works tuple by tuple: its times are milliseconds.
* Keys are 10,000 as in the paper, with Zipf 1.4: so the most frequent one needs as large a part of a core as in the paper.
* Policies decide every {world.INTERVAL_S:g} s, from second {world.BEGINS_AFTER_S:g} on; the first {world.WARM_UP_S:g} s are not
  counted. The simulated runs' settings hold for all else.
* A change of the resource-centric approach stops the query, deals the shards anew as the policy says, and starts it again.
* All runs share one Spark session, warmed up by a run that does not count.
"""

STUDY = Study(
    name="elasticutor-live",
    title="Elasticutor on real Spark",
    reference=(
        "L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang. Elasticutor: Rapid Elasticity for Realtime Stateful Stream "
        "Processing. ACM SIGMOD International Conference on Management of Data, 2019, pp. 573-588."
    ),
    introduction=_INTRODUCTION,
    experiments=(shuffles.EXPERIMENT, reassignment.EXPERIMENT, exchange.EXPERIMENT),
    surroundings=cluster,
)
