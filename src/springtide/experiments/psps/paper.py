"""The figures of the paper's Tables IV to XII, as printed.

D. Wladdimiro, L. Arantes, P. Sens, N. Hidalgo, SBAC-PAD 2022, section V. The tables name no unit of latency; it
must be milliseconds, because no row takes longer than t_out = 1 s where the mean is 369.35.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Printed:
    """One row of a table, its columns in the paper's order."""

    saved_resources: float
    throughput_degradation: float
    processed_share: float
    latency_ms: float


PSPS = Printed(0.5617, 0.1831, 0.9987, 2098.91)  # td 30 s, t_out 30 s, q_size 100,000, load balancing: in seven tables

TIME_INTERVAL_S = {  # Table IV
    30: PSPS,
    60: Printed(0.5390, 0.4332, 0.9979, 5271.01),
    120: Printed(0.5219, 0.9221, 0.9976, 17068.33),
    180: Printed(0.5563, 0.8028, 0.9992, 22364.86),
}
TIMEOUT_S = {  # Table V
    1: Printed(0.6164, 0.1000, 0.9030, 369.35),
    5: Printed(0.5875, 0.1038, 0.9303, 946.69),
    10: Printed(0.5633, 0.1056, 0.9529, 1298.45),
    30: PSPS,
}
QUEUE_ROWS = {  # Table VI
    100: Printed(0.6719, 0.1919, 0.6835, 29.91),
    1000: Printed(0.6656, 0.1375, 0.6922, 311.93),
    10000: Printed(0.6602, 0.1687, 0.7249, 1394.56),
    100000: PSPS,
}
SHUFFLE = Printed(0.5390, 0.4332, 0.9979, 5271.01)  # Table VII
STORM = {  # Table VIII, by the replicas of each operator
    1: Printed(0.8750, 0.5153, 0.3319, 196962.95),
    4: Printed(0.5, 0.8559, 0.9874, 269.75),
    8: Printed(0.0, 0.0, 1.0, 153.51),
}
RAW_PSPS = Printed(0.745, 0.4, 0.9791, 2501.46)  # Table IX
RAW_STORM = Printed(0.875, 0.6706, 0.2822, 48379.95)
DABS = Printed(0.3962, 0.2849, 0.8283, 1391.28)  # Table X
COMPLEX_PSPS = Printed(0.745, 0.0911, 0.9970, 219.13)  # Table XI
COMPLEX_STORM = Printed(0.0, 0.0, 1.0, 31.99)
DNS_PSPS = Printed(0.6062, 0.3734, 0.9884, 335.95)  # Table XII
DNS_STORM = Printed(0.6666, 0.4521, 0.9759, 476.12)
