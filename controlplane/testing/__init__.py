"""For tests: a control plane in their process, :class:`MemoryCluster`, and checks of users' own rules for bundles.

:func:`check_shedder` and :func:`check_placement` hold a rule against what every rule promises, for the views of
:func:`sample_views`. The other names are internal and may change without notice. They are in-memory counterparts of
Kafka, the lease store and the lock, and a virtual clock, for the tests and the simulator of this package. They
implement the protocols of :mod:`controlplane.ports`, and pass the same contract suites as the real adapters
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
"""

from typing import TYPE_CHECKING

from controlplane.errors import MissingExtraError
from controlplane.testing.bundle_rule_checks import check_placement, check_shedder, sample_views
from controlplane.testing.memory_broker import CommitFault as CommitFault
from controlplane.testing.memory_broker import MemoryBroker as MemoryBroker
from controlplane.testing.memory_lease import MemoryLeaseServer as MemoryLeaseServer
from controlplane.testing.memory_lease import MemoryLeaseStore as MemoryLeaseStore
from controlplane.testing.memory_lock import MemoryLockServer as MemoryLockServer
from controlplane.testing.memory_lock import MemoryLockStore as MemoryLockStore
from controlplane.testing.memory_log import MemoryEventWriter as MemoryEventWriter
from controlplane.testing.memory_log import MemoryLogReader as MemoryLogReader
from controlplane.testing.memory_topics import MemoryTopicInspector as MemoryTopicInspector
from controlplane.testing.memory_transactions import MemoryTransactionalWriter as MemoryTransactionalWriter
from controlplane.testing.virtual_clock import VirtualClock as VirtualClock

if TYPE_CHECKING:
    from controlplane.testing.memory_cluster import MemoryCluster

# The public names; the others are internal.
__all__ = ["MemoryCluster", "check_placement", "check_shedder", "sample_views"]

if not TYPE_CHECKING:  # a type checker that saw this function would accept every name

    def __getattr__(name: str) -> object:
        """Import the controller, which needs the extra ``controller``, only for code that runs one."""
        if name != "MemoryCluster":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from controlplane.testing import memory_cluster
        except ModuleNotFoundError as error:
            if error.name not in {"numpy", "redis"}:
                raise
            raise MissingExtraError("controller", "a control plane in memory") from error
        return memory_cluster.MemoryCluster
