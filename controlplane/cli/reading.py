"""Opening the log for a reading command: reached with patience, closed at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.bootstrap import readers
from controlplane.cli.connecting import reach
from controlplane.cli.invocation import Invocation
from controlplane.config import DECISIONS
from controlplane.ports import LogReader


@contextmanager
def reading(invocation: Invocation) -> Iterator[LogReader]:
    """A reader of the cluster's log that has answered once.

    Raises:
        UnreachableError: Kafka did not answer within ``--connect-timeout``.
        ConfigurationError: no address is known, or the cluster has no topics.
    """
    reader = readers.open_reader(invocation.cluster, invocation.kafka)
    try:
        reach(invocation.kafka_place, invocation.connect_timeout_s, lambda: reader.partition_count(DECISIONS))
        yield reader
    finally:
        reader.close()
