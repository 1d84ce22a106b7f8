"""Whether a cluster has got over a fault: everybody does his part again, so that the next fault costs what it costs."""

from contextlib import closing

from controlplane.bootstrap.connections import lease_store, open_source
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import ControllerId, Term, TopicPartition
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import LeaseHeld
from controlplane.topic_reading.drain import drain
from tests.kills.cluster import KvCluster

_PLACE = TopicPartition(HEARTBEATS, 0)
_TAIL = 200
"""Some seconds of ticks and heartbeats in one partition."""
_RECENT_MS = 1_000


def wait_until_settled(cluster: KvCluster) -> None:
    """Wait until every controller ticks, the lease is that of the last term, and every replica is complete.

    A controller ticks once it has read the log: from then on it can take over.
    """
    cluster.wait_until(lambda: set(cluster.real.controllers) <= _ticking(cluster), "every controller ticks")
    cluster.wait_until(lambda: _lease(cluster) == _last_term(cluster), "the lease is the leader's")
    cluster.wait_until_complete()


def _ticking(cluster: KvCluster) -> set[ControllerId]:
    with closing(open_source(cluster.real.cluster, cluster.real.kafka)) as source:
        end = source.reader.end_offsets(HEARTBEATS)[_PLACE]
        batches = drain(source.reader, {_PLACE: max(0, end - _TAIL)}, source.limits, {_PLACE: end})
        records = [record for batch in batches for record in batch]
    newest_ms = max((record.append_time_ms for record in records), default=0)
    recent = [record for record in records if newest_ms - record.append_time_ms < _RECENT_MS]
    payloads = [decode_input(HEARTBEATS, record).payload for record in recent]
    return {payload.controller_id for payload in payloads if isinstance(payload, Tick)}


def _lease(cluster: KvCluster) -> tuple[ControllerId, Term] | None:
    with lease_store(cluster.real.cluster, cluster.real.redis_url) as store:
        try:
            held = store.read()
        except LeaseStoreUnavailableError:
            return None
    return (held.owner, held.term) if isinstance(held, LeaseHeld) else None


def _last_term(cluster: KvCluster) -> tuple[ControllerId, Term]:
    last = cluster.real.decisions()[-1]
    return last.controller_id, last.term
