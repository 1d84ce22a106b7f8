"""The owner of a lease at the time of a grant, as the check of grants sees it."""

from types import SimpleNamespace
from typing import cast

from controlplane.core.values.identifiers import Term
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, VirtualClock
from tests.simulation.clients import SimulatedLeaseStore
from tests.simulation.network import Link


def test_a_grant_is_judged_by_the_store_that_gave_it() -> None:
    """A controller that waits for one store may be directed to another meanwhile, where another one has the lease."""
    asked, other = (MemoryLeaseServer(VirtualClock()) for _ in range(2))
    MemoryLeaseStore(other, "p2").acquire("c2", Term(0), 2_000)
    told: list[tuple[object, ...]] = []

    def sleep(_: float) -> None:
        asked.available, machine.leases = True, other

    machine = SimpleNamespace(
        latency=lambda: None,
        leases=asked,
        network=SimpleNamespace(lease_store=True),
        scheduler=SimpleNamespace(sleep=sleep),
        stores=SimpleNamespace(on_grant=lambda *words: told.append(words)),
        lease_store_answered=False,
    )
    asked.available = False
    SimulatedLeaseStore(cast("Link", machine), 100, "p1").acquire("c1", Term(0), 2_000)
    assert told == [("c1", "", 0, 1)]
    assert machine.lease_store_answered
