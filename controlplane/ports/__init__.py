"""The interfaces through which the services reach the outside world.

Each protocol has a real adapter and an in-memory one, held to one contract suite. Topic names are given without the
cluster's prefix. Lost races are return values. An exception means that the other side did not answer
(``RetryableError``), that another writer took over (``FencedError``), that Kafka or Redis refuses this client's login
or request, so that a retry does not help (``ConfigurationError``), or that the call was wrong.
"""

from controlplane.ports.lease_store import (
    NOTHING_NOTED,
    AcquireOutcome,
    ContenderNote,
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
    PartitionEnd,
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
from controlplane.ports.topic_inspector import TopicInspector

__all__ = [
    "NOTHING_NOTED",
    "AcquireOutcome",
    "Clock",
    "CommitOutcome",
    "Condition",
    "ContenderNote",
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
    "PartitionEnd",
    "PolledBatch",
    "RawRecord",
    "RenewOutcome",
    "Signal",
    "Thread",
    "Threads",
    "TopicInspector",
    "TransactionalWriter",
]
