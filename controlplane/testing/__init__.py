"""Kafka, lease store and lock in memory, on a virtual clock: for users' tests and the simulator.

They are held to the same contract suites as the real adapters (``tests/contracts``).
"""

from controlplane.testing.memory_broker import CommitFault, MemoryBroker
from controlplane.testing.memory_lease import MemoryLeaseServer, MemoryLeaseStore
from controlplane.testing.memory_lock import MemoryLockServer, MemoryLockStore
from controlplane.testing.memory_log import MemoryEventWriter, MemoryLogReader, MemoryTransactionalWriter
from controlplane.testing.virtual_clock import VirtualClock

__all__ = [
    "CommitFault",
    "MemoryBroker",
    "MemoryEventWriter",
    "MemoryLeaseServer",
    "MemoryLeaseStore",
    "MemoryLockServer",
    "MemoryLockStore",
    "MemoryLogReader",
    "MemoryTransactionalWriter",
    "VirtualClock",
]
