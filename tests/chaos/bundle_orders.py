"""Orders transfers, unloads, splits and deletions of bundles all the time, by intents, as the commands do."""

import queue
import random
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from controlplane.bootstrap.connections import open_intent_writer
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.core.operations.bundle_operations import SPLIT_ALGORITHMS
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import IntentId, NodeId
from controlplane.errors import LogUnavailableError
from controlplane.intents_client import submit_intent
from tests.kills.cluster import KvCluster

MOST_BUNDLES: Final = 24
"""A namespace with as many is deleted, and created anew when it is gone."""
_PACE_S: Final = (0.1, 0.6)
_END_S: Final = 60.0
_WEIGHTS: Final[Mapping[IntentKind, int]] = {
    IntentKind.TRANSFER_BUNDLES: 6,
    IntentKind.UNLOAD_BUNDLES: 4,
    IntentKind.SPLIT_BUNDLES: 3,
}
_WHOLE_NAMESPACE: Final = 0.1
"""How often an order that moves bundles is for all of a namespace."""


class Wish(NamedTuple):
    """What an operator might ask for."""

    kind: IntentKind
    arguments: Mapping[str, str]


def next_wish(
    table: RoutingTable, namespaces: Sequence[str], nodes: Sequence[NodeId], chance: random.Random
) -> Wish | None:
    """What to ask for next, by a table that may be old; None if there is nothing now.

    A node that is chosen may be dead, and an order of a bundle that is chosen may stand: then the leader refuses.
    """
    name = chance.choice(namespaces)
    namespace = table.namespaces.get(name)
    if namespace is None:
        return Wish(IntentKind.CREATE_NAMESPACE, {"namespace": name})
    bundles = sorted((each for each in table.bundles.values() if each.namespace == name), key=lambda row: row.lower)
    if namespace.is_ending or not bundles:
        return None
    if len(bundles) >= MOST_BUNDLES:
        return Wish(IntentKind.DELETE_NAMESPACE, {"namespace": name})
    kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    bundle = chance.choice(bundles)
    if kind is IntentKind.SPLIT_BUNDLES:
        return Wish(kind, {"bundles": bundle.bundle_id, **_division(bundle, chance)})
    moved = name if chance.random() < _WHOLE_NAMESPACE else bundle.bundle_id
    destination = {"node": chance.choice(nodes)} if kind is IntentKind.TRANSFER_BUNDLES else {}
    return Wish(kind, {"bundles": moved, **destination})


def _division(bundle: Bundle, chance: random.Random) -> dict[str, str]:
    by = chance.choice(("number", "positions", *SPLIT_ALGORITHMS))
    if by == "number":
        return {"by": by, "numbers": str(chance.choice((2, 3)))}
    if by == "positions":
        # Of a bundle with one hash, or two, there is no position inside: that is refused.
        return {"by": by, "numbers": str(chance.randint(bundle.lower, bundle.upper))}
    return {"by": by}


class BundleOrders:
    """An operator who never rests. A context manager: entering begins, leaving ends it.

    Args:
        cluster: the cluster.
        namespaces: those whose bundles are moved; they are created first.
        nodes: where bundles may be ordered to.
        chance: chooses.

    Attributes:
        acknowledged: the intents that Kafka acknowledged: each of them has to be answered.
        unacknowledged: the ids of those that it did not acknowledge, which may be in the log nevertheless.
    """

    def __init__(
        self, cluster: KvCluster, namespaces: Sequence[str], nodes: Sequence[NodeId], chance: random.Random
    ) -> None:
        self._cluster = cluster
        self._namespaces = tuple(namespaces)
        self._nodes = tuple(nodes)
        self._chance = chance
        self._writer = open_intent_writer(cluster.real.cluster, cluster.real.kafka)
        self._ended = threading.Event()
        self._urgent: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="bundle-orders", daemon=True)
        self._failure: BaseException | None = None
        self.acknowledged: list[Intent] = []
        self.unacknowledged: list[IntentId] = []

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End, and close the writer."""
        self._ended.set()
        self._thread.join(_END_S)
        self._writer.close()

    def unload_all(self) -> None:
        """Ask next that every bundle be released: something has just gone wrong."""
        for name in self._namespaces:
            self._urgent.put(Wish(IntentKind.UNLOAD_BUNDLES, {"bundles": name}))

    def stop(self) -> None:
        """Ask for nothing any more.

        Raises:
            BaseException: what ended the thread.
        """
        self._ended.set()
        self._thread.join(_END_S)
        assert not self._thread.is_alive(), f"an intent was not sent within {_END_S} s"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                wish = self._wish()
                if wish is not None and not self._ended.is_set():
                    self._ask_for(wish)
        except BaseException as failure:  # noqa: BLE001 - raised by stop
            self._failure = failure

    def _wish(self) -> Wish | None:
        """What is urgent, as soon as it is; otherwise what chance chooses after a while."""
        try:
            return self._urgent.get(timeout=self._chance.uniform(*_PACE_S))
        except queue.Empty:
            table = self._cluster.table
        return None if table is None else next_wish(table, self._namespaces, self._nodes, self._chance)

    def _ask_for(self, wish: Wish) -> None:
        check_arguments(wish.kind, wish.arguments)
        number = len(self.acknowledged) + len(self.unacknowledged) + 1
        intent = Intent(f"chaos-{number}", wish.kind.value, "chaos", dict(wish.arguments))
        try:
            submit_intent(self._writer, intent)
        except LogUnavailableError:
            self.unacknowledged.append(intent.intent_id)
        else:
            self.acknowledged.append(intent)
