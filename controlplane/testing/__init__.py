"""In-memory counterparts of Kafka, the lease store and the lock, and a virtual clock, for tests and the simulator.

They implement the protocols of :mod:`controlplane.ports`, and pass the same contract suites as the real adapters
(``tests/contracts``). Nothing happens by itself and nothing waits: time passes when a test advances the clock, and
faults occur when a test requests them. A commit whose answer is lost, for example:

>>> from controlplane.config import ClusterConfig
>>> from controlplane.core.values.identifiers import TopicPartition
>>> from controlplane.ports import OutgoingRecord
>>> cluster, broker = ClusterConfig("demo"), MemoryBroker(VirtualClock())
>>> broker.create_topic("demo.decisions")
>>> writer, reader = MemoryTransactionalWriter(cluster, broker), MemoryLogReader(cluster, broker)
>>> writer.open()
>>> broker.fail_next_commit(CommitFault.ANSWER_LOST_AFTER_COMMIT)
>>> writer.commit([OutgoingRecord("decisions", b"1", b"first", 0)])
<CommitOutcome.UNKNOWN: 'unknown'>
>>> writer.resolve(timeout_ms=0)
<CommitOutcome.COMMITTED: 'committed'>
>>> reader.assign({TopicPartition("decisions", 0): 0})
>>> [record.value for record in reader.poll(max_records=10, timeout_ms=0).records]
[b'first']

This package is internal and may change without notice. Programs cannot use it to test an agent or a routing client with
the public modules alone: both need a routing table, and so a controller, which only :mod:`controlplane.bootstrap`
composes on these parts. Test such programs against the local servers of ``controlplane up`` instead.
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
