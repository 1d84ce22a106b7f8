"""Commands on the log: apply an event, verify the decisions, write and read a snapshot."""

import json
from dataclasses import fields, replace
from typing import Final

from controlplane.core.log.apply import apply, apply_decision
from controlplane.core.log.events import EVENT_TYPES, Event
from controlplane.core.log.snapshots.body import parts_of, pieces_of, restored, snapshot_id
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import CanonicalValue, from_canonical, to_canonical
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvalidInputError, InvariantViolationError
from tests.helpers.logs import complaints_of
from tests.scenarios.engine.call import Call
from tests.scenarios.engine.cluster import Cluster
from tests.scenarios.engine.printing import TIMES, event_text, wrapped
from tests.scenarios.engine.script import ScenarioError

_PART_BYTES: Final = 1_024
"""Small, so that a snapshot of a scenario's state has several parts."""
_TEXTS: Final = ("reason", "detail", "principal", "kind", "intent_id", "node_id")


def apply_events(cluster: Cluster, call: Call) -> list[str]:
    """``apply EVENT NAME=VALUE ... [; EVENT ...]``: apply events to a copy of the state, past the rules of ``decide``.

    An event is written as its class and its fields: numbers, texts, lists as in ``silent=["n1"]``. Rows are
    ``slots=3:n1,n2+4:n2`` and ``rows=...``; ``pins=3:n1`` and ``exclusions=3:n1`` take one slot each and ``+`` between
    them. ``NodeAdmitted node=n1 incarnation=2 [status=draining]`` is short for the node's whole row. Times that are not
    given are that of the last decision. The state of the cluster stays as it is: only decisions change it.
    """
    state = cluster.state
    lines = []
    for part in call.parts():
        event = _event(state, part)
        lines += wrapped(f"{event_text(event)}", 0)
        try:
            state = apply(state, event)
        except InvariantViolationError as error:
            return [*lines, *wrapped(f"refused: {error}", 2)]
        lines.append("  applied")
    return lines


def verify(cluster: Cluster, call: Call) -> list[str]:
    """``verify``: judge the whole log as ``controlplane log verify`` does: chain, invariants, proofs."""
    call.only(words=0)
    decisions = cluster.world.decisions
    proven = sum(decision.certificate is not None for decision in decisions)
    complaints = complaints_of(decisions)
    head = f"{len(decisions)} decisions, {proven} certificates: {'wrong' if complaints else 'right'}"
    return [head, *(line for complaint in complaints for line in wrapped(complaint, 2))]


def snapshot(cluster: Cluster, call: Call) -> list[str]:
    """``snapshot [SEQ]``: write a snapshot of the state after that decision (the last), and begin anew with it.

    The state that is read back follows the decisions after it, and takes the place of the leader's.
    """
    call.only()
    decisions = cluster.world.decisions
    seq = int(call.words[0]) if call.words else len(decisions)
    state = State()
    for decision in decisions[:seq]:
        state = apply_decision(state, decision)
    body = b"".join(pieces_of(state))
    parts = list(parts_of(snapshot_id(state.seq, state.term, 1), LogPoint(state), body, "test", _PART_BYTES))
    read = restored(parts)
    for decision in decisions[seq:]:
        read = apply_decision(read, decision)
    same = read == cluster.state and read.digest() == cluster.state.digest()
    cluster.world.state = read
    parted = "in several parts" if len(parts) > 1 else "in one part"
    outcome = "equal to the leader's state" if same else "DIFFERENT from the leader's state"
    return [f"snapshot of decision {seq} {parted}, and {len(decisions) - seq} decisions after it: {outcome}"]


def _event(state: State, part: Call) -> Event:
    if part.words:
        raise ScenarioError(f"{part.name} takes fields as NAME=VALUE, found {list(part.words)}")
    kind = next((each for each in EVENT_TYPES if each.__name__ == part.name), None)
    if kind is None:
        raise ScenarioError(f"{part.name!r} is no event")
    if part.name == NodeAdmitted.__name__:
        return NodeAdmitted(_node(state, part))
    given: dict[str, CanonicalValue] = {name: _value(name, text) for name, text in part.settings.items()}
    times: dict[str, CanonicalValue] = {each.name: state.decided_at_ms for each in fields(kind) if each.name in TIMES}
    try:
        return from_canonical(kind, times | given)
    except InvalidInputError as error:
        raise ScenarioError(f"{part.name}: {error.detail}") from error


def _node(state: State, part: Call) -> Node:
    part.only("node", "incarnation", "status")
    node_id = part.settings["node"]
    first = Node(node_id, 1, NodeRole.DATA, NodeStatus.ACTIVE, (), "", 1, 0, "1", 0, state.decided_at_ms)
    known = state.membership.nodes.get(node_id, first)
    status = NodeStatus(part.settings.get("status", "active"))
    return replace(known, incarnation=part.whole("incarnation", known.incarnation), status=status)


def _value(name: str, text: str) -> CanonicalValue:
    if name in ("slots", "rows"):
        return [to_canonical(_row(each)) for each in text.split("+")]
    if name in ("pins", "exclusions"):
        kind = Pin if name == "pins" else Exclusion
        return [
            to_canonical(kind(int(slot), node)) for slot, _, node in (each.partition(":") for each in text.split("+"))
        ]
    if name in _TEXTS:
        return text
    try:
        value: CanonicalValue = json.loads(text)
    except ValueError:
        return text
    return value


def _row(text: str) -> Slot:
    slot_id, _, holders = text.partition(":")
    leader, *followers = holders.split(",")
    return Slot(int(slot_id), None if leader == "-" else leader, tuple(followers), Epoch(0))
