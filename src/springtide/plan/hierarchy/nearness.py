"""Which host is asked first: chance decides, and the nearer a host is the likelier it comes early.

V. Cardellini, F. Lo Presti, M. Nardelli, G. Russo Russo, "Towards Hierarchical Autonomous Control for Elastic Data Stream
Processing in the Fog", Euro-Par 2017 Workshops, section 3.1: "the closer the resource, the higher the probability of being
selected"; one without room is passed over for the next.

Departure from the paper: it does not say how much higher. Here the probability is inversely proportional to the delay.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def by_nearness(delays_s: Mapping[str, float], chance: np.random.Generator) -> tuple[str, ...]:
    """The hosts in the order in which they are asked. One at no delay comes before all others.

    Each host waits for a random time whose mean is its delay, and the first one is taken: that is a draw with
    probabilities proportional to 1 / delay, and the second one is the next draw among the others.
    """
    waits = chance.standard_exponential(len(delays_s)) * np.array(list(delays_s.values()))
    return tuple(host for _, host in sorted(zip(waits.tolist(), delays_s, strict=True), key=lambda pair: pair[0]))
