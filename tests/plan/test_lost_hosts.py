"""What the threshold policies do about hosts that are gone."""

from __future__ import annotations

import pytest

from factories import application, operator
from springtide.backends.simulator.settings import Failure, SimulatorSettings
from springtide.model.allocation import HostType, Pool
from springtide.plan.registry import make_policy
from springtide.simulation import Simulation
from springtide.workload.generators import constant


@pytest.mark.parametrize("policy", ["local-thresholds", "global-thresholds"])
def test_a_host_that_failed_is_replaced_up_to_the_least_the_pool_keeps(policy: str) -> None:
    simulation = Simulation(
        trace=constant(rate_per_s=10.0, duration_s=900.0),
        application=application(operator("parse", service_time_s=0.01)),
        pool=Pool(host=HostType(start_s=20.0), min_hosts=2, max_hosts=4),
        settings=SimulatorSettings(failures=(Failure(at_s=300.0),)),
        policy=make_policy(policy, {}),
        policy_name=policy,
    )
    summary, points = simulation.run()
    hosts = {p.time_s: p.hosts for p in points}
    assert hosts[300.0] == 1
    assert hosts[600.0] == 2
    assert summary.rows.backlog == pytest.approx(0, abs=1e-6)
