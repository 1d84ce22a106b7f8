"""Decisions, events and tables as text for a reviewer: one line each, and nothing that changes without a reason.

Digests, fingerprints and log ids are left out: they change with every name, and no reviewer can judge the difference.
Times are log time since the begin of the scenario.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, BundleSplit, NamespaceCreated
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.events import ClusterCreated, PolicyChanged, TermOpened
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.node import Node
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.events import (
    PlanMade,
    ReplicasLeft,
    SlotHandoffsChanged,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.slots.handoffs import SlotHandoff
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import TYPE_FIELD, CanonicalValue, to_canonical
from controlplane.core.values.inputs import Refusal
from tests.helpers.world import START_MS

_WIDTH: Final = 118
TIMES: Final = ("at_ms", "made_at_ms", "not_before_ms")
"""The fields of events that are a moment of log time."""
_IN_FLIGHT: Final = {
    OwnershipState.RELEASING: "releasing",
    OwnershipState.ASSIGNING: "assigning",
    OwnershipState.SPLITTING: "splitting",
}
_LEADS, _FOLLOWS, _NEITHER = "L", "f", "."


def time_text(at_ms: int) -> str:
    """A moment of log time, in seconds since the scenario began."""
    return f"{(at_ms - START_MS) / 1_000:.1f}s"


def wrapped(line: str, indent: int) -> list[str]:
    """A line, broken where it is too long for a review."""
    return textwrap.wrap(
        line,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


def decision_lines(decision: Decision) -> list[str]:
    """A decision: its numbers, why, what changes, and what of the slot table it carried out."""
    lines = [_head(decision)]
    for cause in decision.causes:
        lines += wrapped(f"because {cause.kind.value} {cause.subject}: {cause.evidence}", 2)
    for event in decision.events:
        lines += wrapped(event_text(event), 2)
    if decision.certificate is not None:
        lines += wrapped(_proof_text(decision.certificate), 2)
    if decision.moves_carried_out or decision.leader_changes_carried_out or decision.moves_left:
        lines.append(
            f"  carried out: {decision.moves_carried_out} moved, {decision.leader_changes_carried_out} leaders changed,"
            f" {decision.moves_left} moves left"
        )
    return lines


def refusal_line(refusal: Refusal) -> list[str]:
    """An input that becomes a dead letter."""
    return wrapped(f"dead letter {refusal.reason}: {refusal.coordinates}, {refusal.detail}", 0)


def proof_lines(decision: Decision) -> list[str]:
    """A decision with everything that proves its plan."""
    certificate = decision.certificate
    if certificate is None:
        return [_head(decision), "  no certificate: no slot was planned"]
    said = {
        "shares": certificate.node_shares,
        "leader shares": certificate.leader_shares,
        "prices": certificate.node_prices,
        "leader prices": certificate.leader_prices,
    }
    lines = [_head(decision), *wrapped(_proof_text(certificate), 2)]
    lines += [line for name, each in said.items() if each for line in wrapped(f"{name}: {_pairs(each.items())}", 4)]
    if certificate.lost_slots:
        lines.append(f"    lost slots: {', '.join(map(str, certificate.lost_slots))}")
    if certificate.ready_heirs:
        heirs = _pairs((each.slot_id, ",".join(each.node_ids)) for each in certificate.ready_heirs)
        lines += wrapped(f"ready heirs: {heirs}", 4)
    if certificate.absence_price:
        lines.append(f"    absence price: {certificate.absence_price}")
    return lines


def event_text(event: Event) -> str:  # noqa: C901, PLR0911, PLR0912 - one line for each kind that has a form of its own
    """An event on one line; kinds without a form of their own are their fields."""
    name = type(event).__name__
    match event:
        case NodeAdmitted(node=node):
            return f"{name} {node_text(node)}"
        case SlotsAssigned(slots=rows) | SlotsSplit(slots=rows):
            return f"{name} {rows_text(rows)}"
        case SlotsPinned(pins=pairs) | SlotsUnpinned(pins=pairs):
            return f"{name} {pairs_text(pairs)}"
        case SlotsExcluded(exclusions=excluded) | SlotsIncluded(exclusions=excluded):
            return f"{name} {pairs_text(excluded)}"
        case PlanMade():
            begin = f"plan_id={event.plan_id} not_before={time_text(event.not_before_ms)}"
            return f"{name} {begin} {rows_text(event.rows)}"
        case ReplicasLeft(departures=departures):
            return f"{name} {' '.join(f'{each.slot_id}:{each.node_id}' for each in departures)}"
        case BundlesAssigned(bundles=bundles):
            return f"{name} {' '.join(bundle_text(each) for each in bundles)}"
        case BundleSplit(bundle_id=bundle_id, children=children):
            return f"{name} {bundle_id} into {' '.join(bundle_text(each) for each in children)}"
        case SlotHandoffsChanged(handoffs=handoffs):
            return f"{name} {' '.join(map(handoff_text, handoffs))}"
        case NamespaceCreated(namespace=namespace, bundles=bundles):
            return f"{name} {namespace.name} bundles={len(bundles)}"
        case ClusterCreated(policy=policy):
            return f"{name} {policy_text(policy)}"
        case TermOpened():
            return f"{name} term={event.term} controller={event.controller_id} feature_level={event.feature_level}"
        case PolicyChanged(policy=policy, former_silence_limit=former):
            waits = f"; {former.limit_ms} ms still fence" if former else ""
            return f"{name} {policy_text(policy)}{waits}"
        case IntentAnswered():
            return f"{name} {event.kind} {event.outcome.value}: {event.detail}"
        case _:
            return " ".join([name, *_field_texts(to_canonical(event))])


def node_text(node: Node) -> str:
    """A node as it was admitted."""
    role = "" if node.role.value == "data" else f" role={node.role.value}"
    zone = f" zone={node.zone}" if node.zone else ""
    weight = f" weight={node.weight}" if node.weight != 1 else ""
    return f"{node.node_id} incarnation={node.incarnation}{role}{zone}{weight}"


def rows_text(rows: Iterable[Slot]) -> str:
    """Rows of the slot table as ``3:n1,n2``, the leader first; ``-`` in place of a leader or of everybody."""
    return " ".join(f"{slot.slot_id}:{holders_text(slot)}" for slot in rows)


def holders_text(slot: Slot) -> str:
    """Who holds a slot, the leader first."""
    return ",".join([slot.leader or "-", *slot.followers])


def pairs_text(pairs: Iterable[Pin | Exclusion]) -> str:
    """Pins and exclusions as ``3:n1``; a pin that leads as ``3:n1!``."""
    return " ".join(
        f"{each.slot_id}:{each.node_id}{'!' if isinstance(each, Pin) and each.leads else ''}" for each in pairs
    )


def bundle_text(bundle: Bundle) -> str:
    """A bundle with its owner and, while a node has to act, what it is and to whom it goes."""
    text = f"{bundle.bundle_id}={bundle.owner or '-'}"
    state = bundle.ownership_state
    if not state.is_in_flight:
        return text
    to = f" to {bundle.next_owner}" if bundle.next_owner else ""
    return f"{text} ({_IN_FLIGHT[state]}{to})"


def handoff_text(handoff: SlotHandoff) -> str:
    """A slot with its next leader, and the step of its handoff, as ``3:n1(copies)``."""
    return f"{handoff.slot_id}:{handoff.next_leader}({'waits for the release' if handoff.releases else 'copies'})"


def policy_text(policy: ClusterPolicy) -> str:
    """The fields of a policy that do not have their defaults."""
    plain, default = to_canonical(policy), to_canonical(ClusterPolicy())
    if not isinstance(plain, dict) or not isinstance(default, dict):
        raise TypeError("a policy is a record")
    return " ".join(f"{name}={_value(value)}" for name, value in plain.items() if value != default[name]) or "defaults"


def table_lines(rows: Sequence[Slot], names: Iterable[str]) -> list[str]:
    """The slot table: a line for each node, a column for each slot, and the epoch that each leader has led since."""
    names = sorted({*names, *(name for slot in rows for name in slot.replicas)})
    width = max(len(str(len(rows) - 1)), *(len(str(slot.leader_epoch)) for slot in rows)) + 1
    label = max([len("leader since"), *map(len, names)]) + 1
    lines = [f"{'slot':{label}}" + "".join(f"{slot.slot_id:>{width}}" for slot in rows) + "   leads holds"]
    for name in names:
        marks = [_mark(slot, name) for slot in rows]
        counts = f"   {marks.count(_LEADS):>5} {len(marks) - marks.count(_NEITHER):>5}"
        lines.append(f"{name:{label}}" + "".join(f"{mark:>{width}}" for mark in marks) + counts)
    return [*lines, f"{'leader since':{label}}" + "".join(f"{slot.leader_epoch:>{width}}" for slot in rows)]


def _mark(slot: Slot, name: str) -> str:
    if slot.leader == name:
        return _LEADS
    return _FOLLOWS if name in slot.followers else _NEITHER


def _head(decision: Decision) -> str:
    return f"{time_text(decision.decided_at_ms)} decision {decision.seq}, term {decision.term}, epoch {decision.epoch}"


def _proof_text(certificate: Certificate) -> str:
    figures = (
        f"certificate: {certificate.moved} moved, least {certificate.least_moved}; "
        f"{certificate.leader_changes} leaders changed, least {certificate.least_leader_changes}"
    )
    zones = f"; {certificate.zone_violations} zone violations" if certificate.zone_violations else ""
    short = "".join(f"; {sentence}" for sentence in certificate.shortfalls)
    return f"{figures}{zones}{short}"


def _pairs(items: Iterable[tuple[object, object]]) -> str:
    return " ".join(f"{name}={value}" for name, value in items)


def _field_texts(plain: CanonicalValue) -> list[str]:
    if not isinstance(plain, dict):
        raise TypeError("an event is a record")
    return [f"{name}={_field(name, value)}" for name, value in plain.items() if name != TYPE_FIELD]


def _field(name: str, value: CanonicalValue) -> str:
    return time_text(value) if name in TIMES and isinstance(value, int) else _value(value)


def _value(value: CanonicalValue) -> str:
    if isinstance(value, list):
        return ",".join(map(_value, value)) or "-"
    if isinstance(value, dict):
        return "{" + ", ".join(_field_texts(value)) + "}"
    text = str(value)
    return f"{text!r}" if " " in text or not text else text
