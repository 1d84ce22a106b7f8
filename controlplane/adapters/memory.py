"""The shipped fakes, for simulations, tests and users' own tests: a whole world in memory, on a virtual clock."""

from controlplane.adapters.memory_broker import CommitFault, MemoryBroker
from controlplane.adapters.memory_lease import MemoryLeaseServer, MemoryLeaseStore
from controlplane.adapters.memory_lock import MemoryLockServer, MemoryLockStore
from controlplane.adapters.memory_log import MemoryEventWriter, MemoryLogReader, MemoryTransactionalWriter
from controlplane.adapters.virtual_clock import VirtualClock

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
