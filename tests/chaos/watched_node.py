"""A node of the key-value service that also owns bundles, and writes down what it would serve.

python -m tests.chaos.watched_node --cluster chaos --node-id n1 --bootstrap-servers localhost:9092 --served-into /tmp/x

It looks a hundred times a second at what its agent would accept: some slots, and the bundles of some keys. Besides, it
keeps calls for them open for a while, so that releases have something to wait for.
"""

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.values.identifiers import SlotId
from controlplane.node import (
    Access,
    BundleOwnership,
    FencingToken,
    NodeAgent,
    Ownership,
    ServedBundleRequest,
    SessionState,
    TopicLoad,
)
from controlplane.node.served_request import ServedSlotRequest
from examples.kv.node import KvNode
from examples.serving.service import Service, run, serve, service_parser
from tests.chaos.served import Process, ServedWriter, path_of

NAMESPACES: Final = ("chaos/left", "chaos/right")
KEYS: Final = tuple(f"k{number}" for number in range(16))
SLOTS: Final = tuple(SlotId(number) for number in range(0, 256, 8))
"""Thirty-two of the slots of a new cluster."""
_LOOK_EVERY_S: Final = 0.01
_LONGEST_CALL_US: Final = 100_000
_LONGEST_REST_US: Final = 100_000

_Answer: TypeAlias = Ownership | BundleOwnership
_Call: TypeAlias = ServedBundleRequest | ServedSlotRequest


class _Watched(NamedTuple):
    """A thing that is watched: how its agent is asked for it, and how it serves a call for it."""

    ask: Callable[[], _Answer]
    serve: Callable[[], _Call]


class _OpenCall(NamedTuple):
    """A call in progress; ``end`` ends it, and is to be called at ``until_us``."""

    call: _Call
    end: Callable[[], None]
    began_us: int
    until_us: int


class Watch:
    """Looks at what an agent would accept, and keeps calls open. For one thread."""

    def __init__(self, agent: NodeAgent, writer: ServedWriter, chance: random.Random) -> None:
        """Look at this agent; :meth:`look` does so once."""
        self._writer = writer
        self._chance = chance
        self._things = _things_of(agent)
        self._calls: dict[str, _OpenCall] = {}
        self._rests_until_us: dict[str, int] = {}

    def look(self) -> None:
        """Write down what would be served now, end calls whose time is over, and begin others."""
        before_us = _now_us()
        answers = {thing: watched.ask() for thing, watched in self._things.items()}
        after_us = _now_us()
        tokens = {thing: each.token for thing, each in answers.items() if each.access is Access.ACCEPT}
        self._writer.look(before_us, after_us, tokens)
        for thing in [thing for thing, each in self._calls.items() if each.until_us <= after_us]:
            self._end(thing, tokens.get(thing))
        for thing in tokens.keys() - self._calls.keys():
            if self._rests_until_us.get(thing, 0) <= after_us:
                self._begin(thing)

    def _begin(self, thing: str) -> None:
        stack, call = ExitStack(), self._things[thing].serve()
        stack.enter_context(call)
        if call.access is not Access.ACCEPT:
            stack.close()
            return
        began_us = _now_us()
        until_us = began_us + self._chance.randrange(_LONGEST_CALL_US)
        self._calls[thing] = _OpenCall(call, stack.close, began_us, until_us)

    def _end(self, thing: str, token: FencingToken | None) -> None:
        """End a call. If its thing would not be served any more, only the call says that it still is."""
        opened = self._calls.pop(thing)
        ended_us = _now_us()
        opened.end()
        # The right was held after the moment that was noted.
        if opened.call.held and opened.call.token != token:
            self._writer.call(thing, opened.call.token, opened.began_us, ended_us)
        self._rests_until_us[thing] = ended_us + self._chance.randrange(_LONGEST_REST_US)


class WatchedKvNode(KvNode):
    """A key-value node with a thread that looks at its agent. Its bundles have the watched keys as topics."""

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """The watched keys, so that splits by topics find bounds."""
        return [TopicLoad(key, 1.0, 1.0, 1.0, 1.0) for key in KEYS if bundle.lower <= bundle_hash(key) < bundle.end]

    def __init__(self, node_id: str, folder: Path) -> None:
        """Write down into this folder what would be served."""
        super().__init__(node_id)
        self._folder = folder

    def run_watched(self, service: Service) -> SessionState:
        """Serve until a signal, and write down what would be served."""
        process, ended = Process(self.node_id, os.getpid()), threading.Event()
        with path_of(self._folder, process).open("wb", buffering=0) as stream:
            watch = Watch(self.agent, ServedWriter(stream), random.Random(str(process)))
            thread = threading.Thread(target=_look_on, args=(watch, ended), name="watch", daemon=True)
            thread.start()
            try:
                return run(service)
            finally:
                ended.set()
                thread.join()


def _look_on(watch: Watch, ended: threading.Event) -> None:
    while not ended.wait(_LOOK_EVERY_S):
        watch.look()


def _things_of(agent: NodeAgent) -> dict[str, _Watched]:
    """What is watched, by the names in the file."""
    slots = {
        f"slot {each}": _Watched(partial(agent.ownership, each), partial(agent.serve_slot, each)) for each in SLOTS
    }
    keys = {
        f"{key} of {namespace}": _Watched(
            partial(agent.bundle_of, namespace, key), partial(agent.serve, namespace, key)
        )
        for namespace in NAMESPACES
        for key in KEYS
    }
    return {**slots, **keys}


def _now_us() -> int:
    return time.monotonic_ns() // 1_000


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    parser = service_parser("A key-value node that writes down what it would serve.")
    parser.add_argument("--served-into", type=Path, required=True, help="the folder into which it writes")
    options = parser.parse_args()
    node = WatchedKvNode(options.node_id, options.served_into)
    return serve(node, options, run=node.run_watched)


if __name__ == "__main__":
    sys.exit(main())
