"""Checks of input records that do not depend on the state of the cluster.

Each error names the field, the value and the expected value; the reasons are listed in ``docs/reference/schemas.md``.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, pairwise
from math import inf, isfinite
from typing import Any, Final

from controlplane.config import MAX_PORT
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.bundles.reports import BundleLoad, BundleStatus, BundleStepReport, LoadReport, ResourceUsage
from controlplane.core.cluster.policy import MAX_SLOT_COUNT
from controlplane.core.intents.intent import Intent
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.standing_orders import MAX_WEIGHT
from controlplane.core.slots.reports import ReleasedSlots, SlotGroup, SlotLoad, SlotStatus
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import SlotId
from controlplane.errors import InvalidInputError

MAX_INCARNATION: Final = (1 << 53) - 1
"""The greatest incarnation. A further one has to fit into 64 bits, and to be exact in JSON and JavaScript."""

MAX_NODE_ID_BYTES: Final = 255
"""The greatest length of a node's name in UTF-8. The name stands in each row about the node, and in the pipeline beside
each bundle of a load report: a long one would multiply the report."""

_UNKNOWN_USAGE: Final = (-1.0, -1.0)

NOT_APPEND_TIME: Final = "not_append_time"
REASONS: Final[dict[str, str]] = {
    NOT_APPEND_TIME: "The topic keeps the sender's time and not the broker's: its timestamp type is CreateTime.",
    "missing_value": "The record has a key but no value.",
    "record_too_large": "Key and value together exceed 256 KiB.",
    "not_avro_framed": "The value begins neither like Avro's single-object encoding nor like Confluent's framing.",
    "unknown_fingerprint": "No schema of this version has the fingerprint in the header.",
    "unknown_schema_id": "The registry's schema id in the header is not configured.",
    "truncated": "The value ends before the record does.",
    "trailing_bytes": "The value continues after the end of the record.",
    "undecodable": "The bytes do not match the schema: invalid text, length or branch.",
    "unencodable": "A value does not fit the schema, for example an integer over 64 bits. Only on writing.",
    "wrong_record_type": "The record does not belong on this topic.",
    "key_mismatch": "The record's key is not the id that the value carries.",
    "empty_node_id": "The node has no name.",
    "long_node_id": "The node's name has more than 255 bytes.",
    "empty_controller_id": "The tick has no sender.",
    "empty_intent_id": "The intent has no id.",
    "empty_kind": "The intent has no kind.",
    "empty_bundle_id": "A bundle has no name.",
    "empty_address": "An address lacks its name or its host.",
    "duplicate_address": "Two addresses have the same name.",
    "duplicate_slot_status": "A slot is reported twice in one heartbeat.",
    "duplicate_bundle_status": "A bundle is reported twice in one heartbeat.",
    "duplicate_bundle_step": "A bundle's step is reported twice in one heartbeat.",
    "duplicate_slot_load": "A slot is reported twice in one load report.",
    "duplicate_bundle_load": "A bundle is reported twice in one load report.",
    "invalid_bounds": "The bounds of a bundle's parts do not ascend between 0 and 2^32 - 1, without either.",
    "invalid_slot_runs": "The runs of a group of slots are not pairs of counts: left out, then in the group.",
    "invalid_incarnation": "The incarnation is not between 1 and 2^53 - 1.",
    "invalid_weight": "The weight is not between 1 and 1,000,000.",
    "invalid_port": "The port is not between 1 and 65,535.",
    "slot_out_of_range": "The slot is not below the slot count.",
    "unknown_role": "The role is not a known value.",
    "unknown_status": "The status is not a known value.",
    "unknown_step": "The step of a bundle is not a known value.",
    "negative": "A time, a count, a rate or a size is below zero.",
    "not_a_number": "A rate or a usage is NaN or infinite.",
}
"""Every reason for which the codec refuses an input record, with its meaning."""


def check_payload(payload: InputPayload) -> None:
    """Refuse a payload with values that no node, controller or operator can mean.

    Raises:
        InvalidInputError: with one of :data:`REASONS`.
    """
    _CHECKS[type(payload)](payload)


def check_key(payload: InputPayload, key: bytes | None) -> None:
    """Check that the record's key is the id in its value: the key determines the partition, and so the order.

    A tick is written to every partition by number; its key does not matter.

    Raises:
        InvalidInputError: ``key_mismatch``.
    """
    if not isinstance(payload, Tick) and key != (expected := key_of(payload)):
        name = "intent_id" if isinstance(payload, Intent) else "node_id"
        raise InvalidInputError("key_mismatch", f"the key is {key!r:.80}, {name} is {expected.decode()!r:.80}")


def key_of(payload: InputPayload) -> bytes:
    """The key under which a payload is written: the id in it."""
    match payload:
        case Tick(controller_id=identifier) | Intent(intent_id=identifier):
            return identifier.encode()
        case _:
            return payload.node_id.encode()


def _check_heartbeat(heartbeat: Heartbeat) -> None:
    _check_member(heartbeat)
    if heartbeat.sent_at_ms < 0 or heartbeat.table_epoch < 0:
        _not_negative(heartbeat, "sent_at_ms", "table_epoch")
    slot_count = MAX_SLOT_COUNT
    if heartbeat.slot_settings is not None:
        _not_negative(heartbeat.slot_settings, "slot_count", "replica_count")
        slot_count = min(slot_count, heartbeat.slot_settings.slot_count)
    if heartbeat.slot_statuses:
        for slot in heartbeat.slot_statuses:
            if not 0 <= slot.slot_id < slot_count:
                _check_slot(slot, slot_count)
            if slot.leader_epoch < 0 or slot.last_sync_ms < 0:
                _not_negative(slot, "leader_epoch", "last_sync_ms")
        _unique("duplicate_slot_status", "slot", (slot.slot_id for slot in heartbeat.slot_statuses))
    if heartbeat.slot_groups:
        _check_groups(heartbeat.slot_groups, slot_count, {slot.slot_id for slot in heartbeat.slot_statuses})
    if heartbeat.bundle_statuses:
        for bundle in heartbeat.bundle_statuses:
            _check_bundle(bundle)
        _unique("duplicate_bundle_status", "bundle", (bundle.bundle_id for bundle in heartbeat.bundle_statuses))
    if heartbeat.bundle_steps:
        _check_bundle_steps(heartbeat.bundle_steps)
    if heartbeat.released_slots:
        _check_released_slots(heartbeat.released_slots, slot_count)


def _check_bundle_steps(steps: Sequence[BundleStepReport]) -> None:
    for report in steps:
        _check_bundle(report)
        if any(lower >= upper for lower, upper in pairwise(report.bounds)) or not all(
            0 < bound < LAST_HASH for bound in report.bounds
        ):
            bounds = f"{list(report.bounds)!r:.80}"
            detail = f"the bounds of {report.bundle_id!r:.80} are {bounds}: they ascend between 0 and {LAST_HASH}"
            raise InvalidInputError("invalid_bounds", detail)
    _unique("duplicate_bundle_step", "step of bundle", (report.bundle_id for report in steps))


def _check_released_slots(released: Sequence[ReleasedSlots], slot_count: int) -> None:
    for group in released:
        _not_negative(group, "release_epoch")
        _check_runs(group.runs, slot_count)


def _check_runs(runs: Sequence[int], slot_count: int) -> None:
    if not runs or len(runs) % 2 or runs[0] < 0 or min(runs[1:]) < 1:
        detail = f"the runs are {list(runs)!r:.80}: an even number of counts, the first 0 or more, the others 1 or more"
        raise InvalidInputError("invalid_slot_runs", detail)
    if sum(runs) > slot_count:
        detail = f"the last slot of a group is {sum(runs) - 1}, expected 0 to {slot_count - 1}"
        raise InvalidInputError("slot_out_of_range", detail)


def _check_groups(groups: Sequence[SlotGroup], slot_count: int, reported: AbstractSet[SlotId]) -> None:
    """Check the groups of a heartbeat. The cost is that of the numbers in them, and not of the slots."""
    for group in groups:
        if group.last_sync_ms < 0:
            _not_negative(group, "last_sync_ms")
        _check_runs(group.runs, slot_count)
    if len(groups) > 1 or reported:
        _check_disjoint(groups, reported)


def _check_disjoint(groups: Iterable[SlotGroup], reported: AbstractSet[SlotId]) -> None:
    spans = [(slot_id, slot_id + 1) for slot_id in reported]
    for group in groups:
        ends = accumulate(group.runs)
        spans += zip(ends, ends, strict=False)
    last_end = 0
    for begin, end in sorted(spans):
        if begin < last_end:
            raise InvalidInputError("duplicate_slot_status", f"slot {begin} is reported twice")
        last_end = end


def _check_tick(tick: Tick) -> None:
    _not_empty("empty_controller_id", tick, "controller_id")
    _not_negative(tick, "sent_at_ms", "seq", "table_epoch")


def _check_load_report(report: LoadReport) -> None:
    _check_member(report)
    _not_negative(report, "sent_at_ms", "started_at_ms")
    for name in ("cpu", "memory", "direct_memory", "bandwidth_in", "bandwidth_out"):
        _check_usage(name, getattr(report, name))
    _check_addresses(report.addresses)
    if not _are_certainly_valid(report.bundles):
        for bundle in report.bundles:
            _check_bundle(bundle)
            _not_negative(bundle, *BundleLoad._fields[1:])
        _unique("duplicate_bundle_load", "bundle", (bundle.bundle_id for bundle in report.bundles))
    for slot in report.slots:
        _check_slot(slot, MAX_SLOT_COUNT)
        _not_negative(slot, *SlotLoad._fields[1:])
    _unique("duplicate_slot_load", "slot", (slot.slot_id for slot in report.slots))


def _check_joined(joined: NodeJoined) -> None:
    _check_member(joined)
    _check_addresses(joined.addresses)
    if not 1 <= joined.weight <= MAX_WEIGHT:
        raise InvalidInputError("invalid_weight", f"weight is {joined.weight}, expected 1 to {MAX_WEIGHT}")
    _not_negative(joined, "capacity", "started_at_ms")


def _check_intent(intent: Intent) -> None:
    _not_empty("empty_intent_id", intent, "intent_id")
    _not_empty("empty_kind", intent, "kind")


def _check_member(payload: Heartbeat | LoadReport | NodeJoined | NodeLeaving | NodeLeft) -> None:
    if not payload.node_id:
        raise InvalidInputError("empty_node_id", "node_id is empty: every node has a name")
    if (size_bytes := len(payload.node_id.encode(errors="surrogatepass"))) > MAX_NODE_ID_BYTES:
        detail = f"node_id has {size_bytes} bytes, at most {MAX_NODE_ID_BYTES}: {payload.node_id!r:.80}"
        raise InvalidInputError("long_node_id", detail)
    if not 1 <= payload.incarnation <= MAX_INCARNATION:
        raise InvalidInputError(
            "invalid_incarnation", f"incarnation is {payload.incarnation}, expected 1 to {MAX_INCARNATION}"
        )


def _check_addresses(addresses: tuple[Address, ...]) -> None:
    for address in addresses:
        _not_empty("empty_address", address, "name")
        _not_empty("empty_address", address, "host")
        if not 1 <= address.port <= MAX_PORT:
            raise InvalidInputError(
                "invalid_port", f"port of address {address.name!r:.80} is {address.port}, expected 1 to {MAX_PORT}"
            )
    _unique("duplicate_address", "address", (address.name for address in addresses))


def _check_usage(name: str, usage: ResourceUsage) -> None:
    if usage != _UNKNOWN_USAGE:
        _not_negative(usage, *ResourceUsage._fields, of=name)


def _check_slot(slot: SlotStatus | SlotLoad, slot_count: int) -> None:
    if not 0 <= slot.slot_id < slot_count:
        raise InvalidInputError("slot_out_of_range", f"slot_id is {slot.slot_id}, expected 0 to {slot_count - 1}")


def _check_bundle(bundle: BundleStatus | BundleLoad | BundleStepReport) -> None:
    _not_empty("empty_bundle_id", bundle, "bundle_id")


def _are_certainly_valid(bundles: tuple[BundleLoad, ...]) -> bool:
    """Judge bundles column by column, in less time than one by one: most of a report are bundles, and nearly all valid.

    A sum is no finite number if a summand is none, also where NaN hides a negative number from the minimum. One that is
    not finite may come of summands that are: False says that each bundle has to be looked at.
    """
    if not bundles:
        return True
    ids, *amounts = zip(*bundles, strict=True)
    return all(ids) and len(set(ids)) == len(ids) and all(min(column) >= 0 and sum(column) < inf for column in amounts)


def _not_empty(reason: str, value: object, name: str) -> None:
    if not getattr(value, name):
        raise InvalidInputError(reason, f"{type(value).__name__}.{name} is empty")


def _not_negative(value: object, *names: str, of: str = "") -> None:
    for name in names:
        number = getattr(value, name)
        if not 0 <= number < inf:
            where = f"{of or type(value).__name__}.{name}"
            reason = "negative" if isfinite(number) else "not_a_number"
            raise InvalidInputError(reason, f"{where} is {number}, expected 0 or more")


def _unique(reason: str, what: str, ids: Iterable[int | str]) -> None:
    seen: set[int | str] = set()
    for each in ids:
        if each in seen:
            raise InvalidInputError(reason, f"{what} {each!r:.80} is reported twice")
        seen.add(each)


_CHECKS: Final[dict[type[InputPayload], Callable[[Any], None]]] = {
    Heartbeat: _check_heartbeat,
    Tick: _check_tick,
    LoadReport: _check_load_report,
    NodeJoined: _check_joined,
    NodeLeaving: _check_member,
    NodeLeft: _check_member,
    Intent: _check_intent,
}
