"""Bundles whose node is fixed under the extensible load manager, so that nothing is selected."""

import re
from collections.abc import Container
from typing import Final

from controlplane.core.bundles.names import namespace_of

_NODE: Final = r"([^:/]+:[0-9]+)"
_HEARTBEAT: Final = re.compile(f"pulsar/{_NODE}")
_MONITOR: Final = re.compile(f"sla-monitor/{_NODE}")


def fixed_owner(
    bundle_id: str, registered: Container[str], channel_owner: str | None, *, holds_internal_topic: bool = False
) -> str | None:
    """The node that has to serve a bundle; None if any node may.

    A topic of the load manager itself belongs to the owner of the ownership channel. The namespace of a node's
    heartbeats belongs to that node even if it is not registered, the namespace of its monitoring only if it is.

    Args:
        bundle_id: the bundle.
        registered: the registered nodes.
        channel_owner: the node that leads the ownership channel; None without a leader.
        holds_internal_topic: the request asks for a topic of the load manager itself.
    """
    if holds_internal_topic:
        return channel_owner
    namespace = namespace_of(bundle_id)
    heartbeat = _HEARTBEAT.fullmatch(namespace)
    if heartbeat is not None:
        return heartbeat[1]
    monitor = _MONITOR.fullmatch(namespace)
    return monitor[1] if monitor is not None and monitor[1] in registered else None
