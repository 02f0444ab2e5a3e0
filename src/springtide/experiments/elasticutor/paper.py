"""What the paper's text says in numbers. Figures 6, 7, 13 and 16 have none in the text: what its prose says of them is here.

L. Wang, T. Z. J. Fu, R. T. B. Ma, M. Winslett, Z. Zhang, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream
Processing", SIGMOD 2019, section 5.
"""

from __future__ import annotations

# Section 5: the cluster, and what an operator has unless otherwise stated.
NODES = 32
CORES_PER_NODE = 8
BANDWIDTH_BYTES_PER_S = 125e6  # 1 Gbit/s
MEMORY_BYTES = 32 * 2**30
EXECUTORS = 32
SHARDS_PER_EXECUTOR = 256

# Section 5.1: the micro-benchmark.
KEYS = 10_000
ZIPF = 0.5
ROW_BYTES = 128
SERVICE_TIME_S = 0.001
STATE_BYTES_PER_SHARD = 32 * 1024
SHUFFLES_PER_MINUTE = (0, 1, 2, 4, 8, 16)  # Figure 6 has 0 to 16; the steps between are ours

# Section 5.1, Figures 7 and 9(a).
SYNCHRONISATION_S = 0.002  # of an elastic executor
TRANSIENT_S = {"elastic-executors": (1.0, 3.0), "resource-centric": (10.0, 20.0)}

# Section 5.3, Figure 13: the three workloads.
DATA_INTENSIVE_ROW_BYTES = 8192
DEFAULT_SHUFFLES, FREQUENT_SHUFFLES = 2, 16

# Section 5.4: the exchange.
ORDER_BYTES = 96
TRANSACTION_BYTES = 160
ANALYTICS = 11
MIGRATION_MB_PER_S = {"naive-ec": 13.9, "elastic-executors": 2.4}  # Table 2
REMOTE_MB_PER_S = {"naive-ec": 235.3, "elastic-executors": 21.6}
THROUGHPUT_PER_S = {8: 66_600.0, 16: 121_300.0, 32: 218_600.0}  # Table 3, by nodes
SCHEDULING_MS = {8: 4.1, 16: 5.2, 32: 5.7}
