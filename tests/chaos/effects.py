"""Whether a fault did what its name says: a fault without its effect shows nothing of what was broken by it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from controlplane.bootstrap.connections import open_source
from controlplane.config import HEARTBEATS
from controlplane.core.values.identifiers import NodeId, TopicPartition
from controlplane.embedded.server import EmbeddedServer
from controlplane.inspection.readers import HeartbeatTail, read_last_heartbeats
from controlplane.ports import RawRecord
from controlplane.topic_reading.drain import drain
from tests.kills.cluster import KvCluster

PLACE = TopicPartition(HEARTBEATS, 0)
_HEARD_WITHIN_MS = 2_000
_TAIL = 200
"""Some seconds of ticks and heartbeats in one partition."""
_STOPPED = "T"


class Effect(NamedTuple):
    """What was seen of a fault.

    Attributes:
        had: whether it did what its name says.
        said: what was seen.
    """

    had: bool
    said: str


def last_heartbeats(cluster: KvCluster) -> list[RawRecord]:
    """The last ticks and heartbeats of :data:`PLACE`."""
    source = open_source(cluster.real.cluster, cluster.real.kafka)
    try:
        end = source.reader.end_offsets(HEARTBEATS)[PLACE]
        batches = drain(source.reader, {PLACE: max(0, end - _TAIL)}, source.limits, {PLACE: end})
        return [record for batch in batches for record in batch]
    finally:
        source.close()


def dead(server: EmbeddedServer) -> Effect:
    """A server that was killed, or ended by itself."""
    name = server.data_dir.name
    return Effect(server.pid is None, f"{name} {'has ended' if server.pid is None else 'RUNS'}")


def frozen(server: EmbeddedServer) -> Effect:
    """A server that was paused."""
    name = server.data_dir.name
    # After the program's name in parentheses.
    state = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] if server.pid else ""
    return Effect(state == _STOPPED, f"{name} {'stands still' if state == _STOPPED else 'GOES ON'}")


def heard(cluster: KvCluster, node_id: NodeId) -> Effect:
    """A node whose heartbeats still arrive."""
    with closing(open_source(cluster.real.cluster, cluster.real.kafka)) as source:
        tail = read_last_heartbeats(source, {node_id}, _HEARD_WITHIN_MS)
    return heard_in(tail, node_id)


def heard_in(tail: HeartbeatTail, node_id: NodeId) -> Effect:
    """The same, by the end of ``heartbeats``."""
    last = tail.last.get(node_id)
    if last is None:
        return Effect(False, f"{node_id} IS NOT heard")
    age_ms = tail.age_ms(last)
    had = age_ms < _HEARD_WITHIN_MS
    return Effect(had, f"{node_id} {'was' if had else 'WAS NOT'} heard, {age_ms} ms ago")


def silent(before: dict[str, int], after: dict[str, int]) -> Effect:
    """Links over which answers came, and then none any more.

    Args:
        before: bytes that each had carried when it was broken.
        after: bytes that each has carried now.
    """
    used = {name: carried for name, carried in before.items() if carried}
    leaking = [name for name, carried in used.items() if after[name] != carried]
    return Effect(bool(used) and not leaking, f"{len(used)} links that were in use silent{''.join(_leaks(leaking))}")


def _leaks(names: list[str]) -> Iterator[str]:
    for name in names:
        yield f", {name} IS NOT"
