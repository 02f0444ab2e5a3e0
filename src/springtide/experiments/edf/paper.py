"""What the paper says of its evaluation: the figures of section 4, and nothing that is not in its text.

Figure 4 itself has no numbers in the text: its curves are known here only as far as the prose tells of them.
"""

from __future__ import annotations

R_MAX_S = 0.2
BETAS = (0.5, 0.75)
INTERVAL_S = 30.0
PEAK_ROWS_PER_S = 300.0
WORKERS, WORKER_CORES, WORKER_MEMORY_BYTES = 5, 8, 16 * 2**30
MAX_UTILISATION = 0.7  # U_max
SCALE_OUT_ABOVE = 0.7  # S_s-out
SCALE_IN_SHARE = 0.75  # c
BUCKET_TOKENS, TOKENS_PER_MINUTE = 1, 1.0

ACCEPT_ALL_AVAILABILITY = 0.937
CAUTIOUS_AVAILABILITY = 0.983  # beta = 0.75

FEWEST_REPLICAS = 8  # what accepting everything comes down to, and beta = 0.5 never: one for each operator
CAUTIOUS_MOST_REPLICAS = 10
SECOND_PEAK_S = 4000.0

# "a migration", up to 10 replicas from the 8 there are at least, "a scale-in followed by a scale-out"
CAUTIOUS_RECONFIGURATIONS = 1 + (CAUTIOUS_MOST_REPLICAS - FEWEST_REPLICAS) + 2
