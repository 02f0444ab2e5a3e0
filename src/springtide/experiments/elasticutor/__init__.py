"""Elasticutor's evaluation (SIGMOD 2019) run again: see `world` for the setting, and a module for each group of figures."""

from __future__ import annotations

from springtide.experiments.elasticutor import (
    cluster_sizes,
    exchange,
    executors_and_shards,
    reassignment_page,
    shuffles,
    single_executor_page,
)
from springtide.experiments.study import Study

_INTRODUCTION = """
The paper runs Elasticutor, built into Storm, on 32 EC2 instances with 8 cores each and 1 Gbit/s, against Storm as it is
(static) and a resource-centric approach, which deals an operator's keys anew whenever load changes. Here the cluster is
simulated, with the tuple model; `static`, `resource-centric`, `elastic-executors`, `naive-ec` and `tide` are the policies of
this project. `tide` has its defaults and the same fixed cluster; its shards move at the price of an elastic executor's (2 ms
of synchronisation), and rows go straight to the replica that has their shard.

What the text says is taken from it: hosts, cores, links, executors, shards, keys, Zipf exponent, row and state sizes,
service time, shuffles. What it does not say was chosen, for Figures 6, 7, 13, 16 and Tables 2 and 3:

* Back-pressure. The simulator lets every row in; the paper's system holds its generator back. So rows are let in only as
  long as no replica has more than 0.1 s of work waiting; all others wait in front of the cluster, in a buffer for one second
  of what the generator makes. When it is full the generator stops. **The latency of whoever does not keep up is what this
  buffer holds**: it tells that he does not keep up, not by how much.
* The load. Throughput is measured with 5 % more than all cores could do, latency with 60 % of what they could do.
* Decisions every second. T_max is the service time, which nobody can reach: the cluster is fixed, so all its cores are used.
* A resource-centric repartitioning stops upstream for 3 s (the paper: "several seconds"), whatever the number of shards, and
  the next is decided on a second after that. Elastic executors synchronise each shard in 2 ms. Pauses below 25 ms cost
  nothing in steps of 50 ms.
* The generator takes no cores. There is no queueing among rows that arrive in the same 50 ms: latencies below that are lower
  than on a real cluster.
* The first 10 s of a run are not counted.
"""

STUDY = Study(
    name="elasticutor",
    title="Elasticutor: rapid elasticity by elastic executors",
    reference=(
        "L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang. Elasticutor: Rapid Elasticity for Realtime Stateful Stream "
        "Processing. ACM SIGMOD International Conference on Management of Data, 2019, pp. 573-588."
    ),
    introduction=_INTRODUCTION,
    experiments=(
        shuffles.EXPERIMENT,
        reassignment_page.EXPERIMENT,
        single_executor_page.EXPERIMENT,
        executors_and_shards.EXPERIMENT,
        exchange.EXPERIMENT,
        cluster_sizes.EXPERIMENT,
    ),
)
