"""Bugs of the election: terms, the floor of the lease store, and the fencing of predecessors."""

from typing import Final

from tests.simulation.mutants.mutant import Mutant

MUTANTS: Final = (
    Mutant(
        "skips the term check: leads under a term that the log holds already",
        "controlplane.service.takeover:read_log",
        "return components.follower.state.term",
        "return Term(0)",
        seed=14,
    ),
    Mutant(
        "forgets the floor: the store grants a term without a look at what the log holds",
        "controlplane.core.election.lease:Lease.acquired",
        "max(self.term, floor) + 1",
        "self.term + 1",
    ),
    Mutant(
        "keeps a stale floor: what the log holds is never told to the election",
        "controlplane.service.controller:Controller._raise_floor",
        "self._keeper.raise_floor(log_term)",
        "pass",
        seed=46,
    ),
    Mutant(
        "gives the lease to everybody who asks",
        "controlplane.core.election.lease:Lease.acquired",
        "if self.holder(now_ms) and not self.is_held_by(now_ms, owner, process):",
        "if False:",
    ),
    Mutant(
        "does not fence its predecessor",
        "controlplane.testing.memory_broker:MemoryBroker.init_transactions",
        "producer.epoch += 1",
        "producer.epoch = 1",
        seed=13,
    ),
    Mutant(
        "leads before it has read the log to its end",
        "controlplane.service.follower:LogFollower.read_to_end",
        "while not self.poll(50):",
        "while False:",
        seed=18,
    ),
)
