"""Whether a cluster has got over a fault: every process works again, so that the next fault costs what it costs."""

from pathlib import Path

from controlplane.bootstrap.connections import lease_store
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import ControllerId, Term
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import LeaseHeld
from tests.chaos.effects import last_heartbeats
from tests.kills.cluster import KvCluster

WITHOUT_SOURCE = "slots start without a complete source"
"""What a node of the key-value service logs then."""
_RECENT_MS = 1_000


def wait_until_settled(cluster: KvCluster) -> None:
    """Wait until every controller ticks, the lease is that of the last term, and every replica is complete.

    A controller ticks once it has read the log: from then on it can take over.
    """
    cluster.wait_until(lambda: set(cluster.real.controllers) <= _ticking(cluster), "every controller ticks")
    cluster.wait_until(lambda: _lease(cluster) == _last_term(cluster), "the lease is the leader's")
    cluster.wait_until_complete()


def _ticking(cluster: KvCluster) -> set[ControllerId]:
    records = last_heartbeats(cluster)
    # By the last record's time, not the latest: a broker's clock may have been ahead for a while.
    recent = [record for record in records if abs(records[-1].append_time_ms - record.append_time_ms) < _RECENT_MS]
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


def stopped_by_themselves(cluster: KvCluster) -> list[str]:
    """The processes that do not run, once everything that was killed has been started again."""
    return [
        f"{name} ended with status {process.returncode}: {_end_of(cluster.real.log_of(name))}"
        for name, process in {**cluster.real.controllers, **cluster.nodes}.items()
        if process.poll() is not None
    ]


def slots_without_source(cluster: KvCluster) -> list[str]:
    """What nodes said of slots that they served without having found a node that had them complete, in order of time.

    No fault kills two nodes at once, and each slot has two replicas.
    """
    said = (
        line for name in cluster.nodes for line in cluster.real.log_of(name).read_text(errors="replace").splitlines()
    )
    # A line begins with its time.
    return sorted(line for line in said if WITHOUT_SOURCE in line)


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2_000:]
