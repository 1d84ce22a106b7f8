"""Nodes that report the load of their bundles, for the measurements of the pipeline."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from controlplane.codec.inputs import encode_input
from controlplane.config import LOAD_REPORTS, ClusterConfig
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage

_UNKNOWN: Final = ResourceUsage(-1.0, -1.0)
_VARIANTS: Final = 2
"""Reports of a node that take turns. They are encoded beforehand, so that little of the processors is spent on them."""


class ReportingFleet:
    """Nodes that each report the same bundles, in turns.

    Args:
        servers: of Kafka.
        cluster: whose topics.
        bundle_count: of all nodes.
        per_report: bundles of one node.
    """

    def __init__(self, servers: str, cluster: ClusterConfig, bundle_count: int, per_report: int) -> None:
        self._topic = cluster.topic(LOAD_REPORTS)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4"})
        ids = [f"shop/orders-{number // 100}/{number:08x}" for number in range(bundle_count)]
        nodes = [ids[start : start + per_report] for start in range(0, bundle_count, per_report)]
        source = random.Random(1)
        records = [
            (f"node-{number}".encode(), encode_input(_report(f"node-{number}", bundle_ids, source.random)))
            for _ in range(_VARIANTS)
            for number, bundle_ids in enumerate(nodes)
        ]
        self._turns: Iterator[tuple[bytes, bytes]] = itertools.cycle(records)
        self.node_count: Final = len(nodes)
        self.sent = 0

    def report(self, count: int, on_append: Callable[[Message], None] | None = None) -> None:
        """Append so many reports, without waiting for the broker; see :meth:`flush`.

        Args:
            count: of reports, one of each node after the other.
            on_append: is given each record once the broker has appended it, within this method or :meth:`flush`.
        """

        def appended(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise RuntimeError(f"a report was not appended: {error}")
            if on_append is not None:
                on_append(message)

        for key, value in itertools.islice(self._turns, count):
            self._producer.produce(self._topic, value=value, key=key, on_delivery=appended)
            self._producer.poll(0)
        self.sent += count

    def flush(self) -> None:
        """Wait until the broker has every report."""
        self._producer.flush()


def _report(node_id: str, bundle_ids: Iterable[str], draw: Callable[[], float]) -> LoadReport:
    bundles = tuple(
        BundleLoad(each, 400 * draw(), 400 * draw(), 2e6 * draw(), 2e6 * draw(), 5, 10, 10, 0) for each in bundle_ids
    )
    usage = ResourceUsage(100 * draw(), 100.0)
    return LoadReport(node_id, 1, 1, usage, *(_UNKNOWN,) * 2, usage, usage, (), "1", 0, bundles, ())
