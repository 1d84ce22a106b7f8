"""Nodes in processes of their own, which report when they begin and when they end to accept requests."""

import multiprocessing
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Final, NamedTuple, Self, TypeAlias

from benchmarks.quiet import only_warnings
from controlplane import node_agent
from controlplane.core.values.identifiers import NamespaceName, NodeId, SlotId
from controlplane.errors import InvariantViolationError, LogUnavailableError
from controlplane.node import Access, Bundle, NodeAgent, NodeCallbacks, SlotChanged, SlotGained

Piece: TypeAlias = SlotId | tuple[NamespaceName, str]
"""What moves: a slot, or a bundle as its namespace and one of its keys."""

COPY_S: Final = 0.2
"""How long a node says that it copies the slots that it gains."""
_LOOK_EVERY_S: Final = 0.001
_END_TIMEOUT_S: Final = 30


class Change(NamedTuple):
    """What a node answers for a piece from a moment on.

    Attributes:
        piece: the slot or the bundle.
        accepts: whether the node accepts requests for it.
        since_s: the monotonic clock, which the machine's processes share.
    """

    piece: Piece
    accepts: bool
    since_s: float


class WatchedNodes:
    """The nodes of one cluster. A context manager, which ends those that run.

    Args:
        cluster: the cluster's name.
        bootstrap_servers: Kafka's servers, as a ``host:port`` list.
    """

    def __init__(self, cluster: str, bootstrap_servers: str) -> None:
        self._place = cluster, bootstrap_servers
        self._running: dict[NodeId, tuple[multiprocessing.Process, Connection]] = {}
        self._watched: tuple[Piece, ...] = ()
        self._last: dict[tuple[NodeId, Piece], Change] = {}

    def __enter__(self) -> Self:
        """The nodes themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the nodes at once, with what they hold."""
        for process, _pipe in self._running.values():
            process.kill()
            process.join(_END_TIMEOUT_S)

    def start(self, node_id: NodeId) -> None:
        """Start a node; it joins."""
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_run_node, args=(theirs, *self._place, node_id), daemon=True)
        process.start()
        theirs.close()
        self._running[node_id] = process, ours
        ours.send(self._watched)

    def kill(self, node_id: NodeId) -> None:
        """End a node by SIGKILL. Whatever it accepted, it accepts no more since just before."""
        process, pipe = self._running.pop(node_id)
        killed_s = time.monotonic()
        process.kill()
        process.join(_END_TIMEOUT_S)
        pipe.close()
        for piece in self._watched:
            self._last[node_id, piece] = Change(piece, accepts=False, since_s=killed_s)

    def watch(self, pieces: Collection[Piece]) -> None:
        """Let the nodes report what they answer for these pieces, and for no others."""
        self._watched = tuple(pieces)
        for _process, pipe in self._running.values():
            pipe.send(self._watched)

    def wait_until_all_accept(self, node_id: NodeId, pieces: Sequence[Piece], timeout_s: float) -> None:
        """Wait until a node accepts requests for watched pieces, and the others do not.

        Raises:
            LogUnavailableError: this did not come about in time, or a node has ended.
        """
        until_s = time.monotonic() + timeout_s
        while any(self._accepts(name, piece) != (name == node_id) for name in self._running for piece in pieces):
            pipes: Mapping[Connection, NodeId] = {pipe: name for name, (_, pipe) in self._running.items()}
            ready = wait(list(pipes), until_s - time.monotonic())
            if not ready:
                left = sum(not self._accepts(node_id, piece) for piece in pieces)
                raise LogUnavailableError(f"{node_id} does not accept {left} of {len(pieces)} after {timeout_s:.0f} s")
            for pipe in ready:
                if isinstance(pipe, Connection):
                    self._take(pipes[pipe], pipe)

    def gap_ms(self, piece: Piece, former: NodeId, present: NodeId) -> float:
        """For how long no node has accepted requests for a piece that has moved.

        Raises:
            InvariantViolationError: both did so at the same time.
        """
        gap_s = self._last[present, piece].since_s - self._last[former, piece].since_s
        if gap_s < 0:
            message = f"{former} and {present} both accepted requests for {piece} for {-1_000 * gap_s:.1f} ms"
            raise InvariantViolationError(message)
        return 1_000 * gap_s

    def _accepts(self, node_id: NodeId, piece: Piece) -> bool | None:
        """What a node has reported last; None if it has reported nothing."""
        change = self._last.get((node_id, piece))
        return None if change is None else change.accepts

    def _take(self, node_id: NodeId, pipe: Connection) -> None:
        try:
            changes: list[Change] = pipe.recv()
        except EOFError as error:
            raise LogUnavailableError(f"node {node_id} has ended; its output says why") from error
        for change in changes:
            self._last[node_id, change.piece] = change


class _Service(NodeCallbacks):
    """A service without data: it says after a while that it has copied the slots that it gains.

    Attributes:
        agent: its agent.
        stopped_s: when a slot or a bundle was last known to be accepted no more, by its id, before the node said so.
    """

    def __init__(self) -> None:
        self.agent: NodeAgent | None = None
        self.stopped_s: dict[SlotId | str, float] = {}

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Note which slots the node leads and has to release."""
        now_s = time.monotonic()
        for slot in changed:
            if slot.leads and self.agent and self.agent.ownership(slot.slot_id).access is Access.MOVED:
                self.stopped_s[slot.slot_id] = now_s

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """Note that the node has to release it."""
        self.stopped_s[bundle.bundle_id] = time.monotonic()

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Copy them in another thread."""
        copying = threading.Timer(COPY_S, self._copied, [gained])
        copying.daemon = True
        copying.start()

    def _copied(self, gained: Sequence[SlotGained]) -> None:
        for slot in gained:
            if self.agent is not None:
                self.agent.slot_ready(slot.slot_id, slot.epoch)


def _run_node(pipe: Connection, cluster: str, bootstrap_servers: str, node_id: NodeId) -> None:
    """A node that reports changes until it is killed."""
    only_warnings()
    service = _Service()
    service.agent = agent = node_agent(cluster, bootstrap_servers, node_id, callbacks=service)
    agent.start()
    pieces: tuple[Piece, ...] = ()
    known: dict[Piece, Change] = {}
    looked_at, is_settled = None, True
    while True:
        if pipe.poll(_LOOK_EVERY_S):
            pieces, known, is_settled = pipe.recv(), {}, False
        agent.check()
        table = agent.table
        if table is looked_at and is_settled:
            continue
        looked_at, now_s = table, time.monotonic()
        answers = {piece: _answer(agent, node_id, piece) for piece in pieces}
        # Without another table, only what the table gives to this node may become accepted.
        is_settled = all(answer.accepts or not answer.is_named for answer in answers.values())
        changes = {
            piece: _change(piece, answer, known.get(piece), service.stopped_s, now_s)
            for piece, answer in answers.items()
            if piece not in known or known[piece].accepts != answer.accepts
        }
        if changes:
            known |= changes
            pipe.send(list(changes.values()))


def _change(
    piece: Piece, answer: "_Answer", before: Change | None, stopped_s: Mapping[SlotId | str, float], now_s: float
) -> Change:
    """The change that a look at ``now_s`` finds. The service may have known it earlier, if the machine is busy."""
    stopped = stopped_s.get(answer.known_as, now_s)
    has_stopped = not answer.accepts and before is not None and before.since_s < stopped
    return Change(piece, answer.accepts, min(stopped, now_s) if has_stopped else now_s)


class _Answer(NamedTuple):
    """What an agent answers for a piece.

    Attributes:
        accepts: whether it accepts requests.
        is_named: whether its table names it as the node that may.
        known_as: the id of the slot or the bundle.
    """

    accepts: bool
    is_named: bool
    known_as: SlotId | str


def _answer(agent: NodeAgent, node_id: NodeId, piece: Piece) -> _Answer:
    if isinstance(piece, int):
        slot = agent.ownership(piece)
        return _Answer(slot.access is Access.ACCEPT, slot.ask == node_id, piece)
    answer = agent.bundle_of(*piece)
    bundle = answer.bundle
    is_named = bundle is not None and bundle.serving_node == node_id
    return _Answer(answer.access is Access.ACCEPT, is_named, "" if bundle is None else bundle.bundle_id)
