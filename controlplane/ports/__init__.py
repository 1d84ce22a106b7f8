"""What the services need from the world: a fake and a real adapter for each protocol, under one contract suite.

Topic names are without the cluster's prefix. Lost races are return values; an exception means that the other side did
not answer (``RetryableError``), that another writer took over (``FencedError``), that Kafka or Redis refuses this
client's login or request (``ConfigurationError``: trying again does not help), or that the call was wrong.
"""

from controlplane.ports.lease_store import (
    AcquireOutcome,
    LeaseGranted,
    LeaseHeld,
    LeaseLeft,
    LeaseMissing,
    LeaseRenewed,
    LeaseStore,
    LockStore,
    RenewOutcome,
)
from controlplane.ports.log import (
    CommitOutcome,
    Delivery,
    EventWriter,
    LogReader,
    OutgoingRecord,
    PolledBatch,
    RawRecord,
    TransactionalWriter,
)
from controlplane.ports.runtime import (
    Clock,
    Condition,
    Mailbox,
    Signal,
    Thread,
    Threads,
)

__all__ = [
    "AcquireOutcome",
    "Clock",
    "CommitOutcome",
    "Condition",
    "Delivery",
    "EventWriter",
    "LeaseGranted",
    "LeaseHeld",
    "LeaseLeft",
    "LeaseMissing",
    "LeaseRenewed",
    "LeaseStore",
    "LockStore",
    "LogReader",
    "Mailbox",
    "OutgoingRecord",
    "PolledBatch",
    "RawRecord",
    "RenewOutcome",
    "Signal",
    "Thread",
    "Threads",
    "TransactionalWriter",
]
