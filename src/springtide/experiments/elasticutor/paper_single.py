"""What concerns one executor, beyond `paper`: what a reassignment is set to cost, and sizes as the page writes them."""

from __future__ import annotations

from springtide.backends.simulator.settings import Moves
from springtide.experiments.elasticutor import paper
from springtide.experiments.elasticutor.world import ELASTIC, RESOURCE_CENTRIC, TIDE

KB, MB = 1024, 1024**2
LARGE_STATE_BYTES = 32 * MB  # "the time of inter-node state migration increases significantly as the state size reaches 32 MB"
THETA = 1.2  # section 3.1

# Upstream executors where the text does not vary them: as many as the cluster has cores, as static and resource-centric have.
UPSTREAM = paper.NODES * paper.CORES_PER_NODE

# "The synchronization time is around 2 ms regardless of the number of upstream executors."
_ELASTIC_MOVES = Moves(synchronisation_s=paper.SYNCHRONISATION_S)
# The text has no times for the resource-centric approach, only "2-3 orders of magnitude longer", and that it grows with the
# upstream executors: 0.2 s with few of them, and 2 s with as many as the cluster has cores.
PER_UPSTREAM_S = 900 * paper.SYNCHRONISATION_S / UPSTREAM
_RESOURCE_CENTRIC_MOVES = Moves(
    synchronisation_s=100 * paper.SYNCHRONISATION_S, synchronisation_per_upstream_replica_s=PER_UPSTREAM_S
)

MOVES = {ELASTIC: _ELASTIC_MOVES, RESOURCE_CENTRIC: _RESOURCE_CENTRIC_MOVES, TIDE: _ELASTIC_MOVES}


def bytes_text(size: float) -> str:
    """
    >>> [bytes_text(size) for size in (128, 32 * KB, 1.5 * MB)]
    ['128 B', '32 KB', '1.5 MB']
    """
    for unit, name in ((MB, "MB"), (KB, "KB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"
