"""A node that serves keys by slot and topics by bundle, as one member of one cluster.

python -m examples.kv_and_pubsub --cluster demo --node-id n1 --bootstrap-servers localhost:9092 --directory topics

Each service has an address of its own. The agent tells each of them what concerns it.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from controlplane.node import (
    Bundle,
    FencingToken,
    NodeAgent,
    NodeLoad,
    SlotChanged,
    SlotGained,
    SlotLost,
    SlotReleasing,
    TopicLoad,
)
from examples.kv.node import KvNode
from examples.pubsub.broker import Broker
from examples.serving.protocol import Place
from examples.serving.service import Service, serve, service_parser


class KvAndPubSub(Service):
    """Two services of one process: slots are the first one's, bundles the second one's."""

    version = "kv-and-pubsub-1"

    def __init__(self, kv: KvNode, broker: Broker) -> None:
        self._kv = kv
        self._broker = broker

    @property
    def addresses(self) -> Mapping[str, Place]:
        """Those of both."""
        return {**self._kv.addresses, **self._broker.addresses}

    def join(self, agent: NodeAgent) -> None:
        """Both are members by the same agent."""
        super().join(agent)
        self._kv.join(agent)
        self._broker.join(agent)

    def load(self) -> NodeLoad:
        """Of slots and of bundles. What the process takes, it takes for both."""
        return replace(self._kv.load(), bundles=self._broker.load().bundles)

    def start(self) -> None:
        """Start both."""
        self._kv.start()
        self._broker.start()

    def close(self) -> None:
        """Answer no more requests."""
        self._kv.close()
        self._broker.close()

    # -- what the agent tells -----------------------------------------------------------------------------------------

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Told to the key-value service, as all of slots."""
        self._kv.on_slots_lost(lost)

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Fetch them."""
        self._kv.on_slots_gained(gained)

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Serve under the new rows."""
        self._kv.on_slots_changed(changed)

    def on_slots_releasing(self, releasing: Sequence[SlotReleasing]) -> None:
        """Let the next leaders serve."""
        self._kv.on_slots_releasing(releasing)

    def on_bundle_preparing(self, bundle: Bundle) -> None:
        """Told to the publish-subscribe service, as all of bundles."""
        self._broker.on_bundle_preparing(bundle)

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """Open its topics."""
        self._broker.on_bundle_assigned(bundle, token)

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """Close its topics."""
        self._broker.on_bundle_releasing(bundle)

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """Send its clients away."""
        self._broker.on_bundle_released(bundle_id, bundle)

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """Its topics are in the parts now."""
        self._broker.on_bundle_split(parent, children)

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """Where a bundle can be divided."""
        return self._broker.topics_of_bundle(bundle)


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    parser = service_parser("A node of the key-value service and of the publish-subscribe service.")
    parser.add_argument("--directory", type=Path, required=True, help="where all nodes have the files of the topics")
    options = parser.parse_args()
    kv = KvNode(options.node_id, (options.host, options.port))
    broker = Broker(options.node_id, options.directory, (options.host, 0))
    return serve(KvAndPubSub(kv, broker), options)


if __name__ == "__main__":
    sys.exit(main())
