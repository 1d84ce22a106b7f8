"""Converts input records between bytes and checked payloads.

Everything that one record can be checked for without the state of the cluster is checked here, on reading and on
writing, so that the core receives possible values only. A refused record becomes a dead letter with the reason.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias, cast

from controlplane.codec.conversion import from_datum, to_datum
from controlplane.codec.framing import (
    SINGLE_OBJECT_HEADER_BYTES,
    SINGLE_OBJECT_MARKER,
    Datum,
    Framing,
    default_framing,
    read_body,
)
from controlplane.codec.input_checks import NOT_APPEND_TIME, check_key, check_payload, key_of
from controlplane.codec.needed_level import needed_level
from controlplane.config import HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.intents.intent import Intent
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotGroup, SlotSettings
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.core.values.identifiers import Coordinates, Epoch
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import InvalidInputError

MAX_RECORD_BYTES: Final = 256 * 1024
"""Limit of a record's size: a record whose key and value together are larger is refused."""
_STATUS_BYTES: Final = 5
"""Five fields of at least a byte."""
_SLOT_LOAD_BYTES: Final = 18
"""Two floating-point numbers of 8 bytes, and two integers."""
_BUNDLE_LOAD_BYTES: Final = 36
"""Four floating-point numbers of 8 bytes, and four integers."""

_FIRST_VERSION: Final = 1
_LATER_IN_TUPLES: Final[Mapping[type, Mapping[str, object]]] = {
    Heartbeat: {"slot_groups": [], "process_id": "", "bundle_steps": [], "released_slots": []},
    Tick: {"seq": 0, "table_epoch": 0},
}
"""The fields that version 2 added to records that are named tuples, with their defaults in Avro.

Dataclasses mark theirs themselves (:func:`controlplane.core.values.canonical.later`).
"""


_Build: TypeAlias = Callable[[Datum], InputPayload]


class _TopicDecoder:
    """Decodes the records of one topic: the headers of current schemas by one look-up, all others step by step."""

    def __init__(self, topic: str, framing: Framing) -> None:
        """Make a builder for each record that belongs on the topic.

        Raises:
            ValueError: the topic is not an input topic (a defect of the caller).
        """
        if topic not in TOPIC_TYPES:
            raise ValueError(f"{topic!r} is not one of the input topics {', '.join(TOPIC_TYPES)}")
        self._topic = topic
        self._framing = framing
        self._builders = {kind.__name__: _builder(kind) for kind in TOPIC_TYPES[topic]}
        current = [framing.store.current(name) for name in self._builders]
        self._by_header = {
            SINGLE_OBJECT_MARKER + schema.fingerprint: (schema, self._builders[schema.name]) for schema in current
        }

    def decode(self, value: bytes) -> InputPayload:
        """The payload, not yet checked.

        Raises:
            InvalidInputError: the bytes are not a record of the topic.
        """
        known = self._by_header.get(value[:SINGLE_OBJECT_HEADER_BYTES])
        if known is not None:
            schema, build = known
            return build(read_body(value, SINGLE_OBJECT_HEADER_BYTES, schema))
        schema, start = self._framing.unframe(value)
        builder = self._builders.get(schema.name)
        if builder is None:
            raise InvalidInputError(
                "wrong_record_type",
                f"the record is a {schema.name}; {self._topic} takes {', '.join(sorted(self._builders))}",
            )
        return builder(self._framing.decode_body(value, start, schema))


@functools.cache
def _topic_decoder(topic: str, framing: Framing) -> _TopicDecoder:
    return _TopicDecoder(topic, framing)


def _builder(kind: type[InputPayload]) -> _Build:
    if kind is Heartbeat:
        return _heartbeat
    return functools.partial(from_datum, kind)


_ROLES: Final = {role.value: role for role in NodeRole}
_STATUSES: Final = {status.value: status for status in ReplicaStatus}


def _heartbeat(datum: Datum) -> Heartbeat:
    """Like ``from_datum``, at a third of its cost: most of a leader's input records are heartbeats."""
    role = _ROLES.get(cast("str", datum["role"]))
    if (
        role is None
        or datum["slot_statuses"]
        or datum["bundle_statuses"]
        or datum["bundle_steps"]
        or datum["released_slots"]
    ):
        return from_datum(Heartbeat, datum)
    settings = cast("dict[str, Any] | None", datum["slot_settings"])
    groups = cast("list[dict[str, Any]]", datum["slot_groups"])
    statuses = [_STATUSES.get(group["status"]) for group in groups]
    if None in statuses:
        return from_datum(Heartbeat, datum)
    return Heartbeat(
        cast("str", datum["node_id"]),
        cast("int", datum["incarnation"]),
        cast("int", datum["sent_at_ms"]),
        cast("Epoch", datum["table_epoch"]),
        role,
        None if settings is None else SlotSettings(**settings),
        slot_groups=tuple(
            [
                SlotGroup(cast("ReplicaStatus", status), group["last_sync_ms"], tuple(group["runs"]))
                for status, group in zip(statuses, groups, strict=True)
            ]
        ),
        process_id=cast("str", datum["process_id"]),
    )


TOPIC_TYPES: Final[dict[str, tuple[type[InputPayload], ...]]] = {
    HEARTBEATS: (Heartbeat, Tick),
    LOAD_REPORTS: (LoadReport,),
    MEMBERSHIP: (NodeJoined, NodeLeaving, NodeLeft),
    INTENTS: (Intent,),
}
"""The records that belong on each input topic."""


class RawInput(Protocol):
    """A record as it is stored in a topic, without the topic's name (``controlplane.ports.RawRecord`` is one)."""

    @property
    def partition(self) -> int:
        """Its partition."""
        ...

    @property
    def offset(self) -> int:
        """Its offset."""
        ...

    @property
    def append_time_ms(self) -> int:
        """When the broker appended it, in milliseconds since 1970."""
        ...

    @property
    def is_append_time(self) -> bool:
        """Whether that time is the broker's, and not the sender's."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key."""
        ...

    @property
    def value(self) -> bytes | None:
        """Its value."""
        ...


def decode_input(topic: str, raw: RawInput, framing: Framing | None = None) -> InputRecord:
    """Read and check one input record.

    Args:
        topic: an input topic's name without the cluster's prefix.
        raw: the record.
        framing: how records are framed; None for single-object encoding with the package's schemas.

    Raises:
        InvalidInputError: the record is refused; ``reason`` is one of those in ``docs/reference/schemas.md``.
        ValueError: the topic is no input topic (a defect of the caller).
    """
    value = raw.value
    key = raw.key
    if not raw.is_append_time:
        raise InvalidInputError(
            NOT_APPEND_TIME,
            "the topic keeps the time at which a record was created: set message.timestamp.type to LogAppendTime",
        )
    if value is None:
        raise InvalidInputError("missing_value", "the record has no value: input topics have no tombstones")
    if len(value) + len(key or b"") > MAX_RECORD_BYTES:
        raise InvalidInputError(
            "record_too_large", f"key and value have {len(value) + len(key or b'')} bytes, at most {MAX_RECORD_BYTES}"
        )
    payload = _topic_decoder(topic, framing or default_framing()).decode(value)
    check_payload(payload)
    check_key(payload, key)
    return InputRecord(Coordinates(topic, raw.partition, raw.offset, raw.append_time_ms), payload, value)


def encode_input(payload: InputPayload) -> bytes:
    """Check a payload and return its framed bytes, in the oldest version of its schema that can hold it.

    A node that uses nothing of a later feature level is therefore understood by controllers that do not support it.

    Raises:
        InvalidInputError: the payload would be refused by every reader.
    """
    least_bytes = _least_bytes(payload)
    if least_bytes > MAX_RECORD_BYTES:
        detail = f"{type(payload).__name__} takes more than {least_bytes} bytes, at most {MAX_RECORD_BYTES}"
        raise InvalidInputError("record_too_large", detail)
    check_payload(payload)
    datum, version = to_datum(payload), None
    later = _LATER_IN_TUPLES.get(type(payload), {})
    if needed_level(payload) == FIRST_LEVEL and all(datum[name] == default for name, default in later.items()):
        datum = {name: item for name, item in datum.items() if name not in later}
        version = _FIRST_VERSION
    encoded = default_framing().encode(type(payload).__name__, datum, version)
    size_bytes = len(encoded) + len(key_of(payload))
    if size_bytes > MAX_RECORD_BYTES:
        raise InvalidInputError(
            "record_too_large", f"{type(payload).__name__} takes {size_bytes} bytes, at most {MAX_RECORD_BYTES}"
        )
    return encoded


def _least_bytes(payload: InputPayload) -> int:
    """A bound from below of a record's size: that of its lists, each number of them in its shortest form.

    To write a record of 100,000 bundles takes a second, in which a node could send nothing else. To count takes 10 ms.
    """
    match payload:
        case Heartbeat(slot_statuses=slots, bundle_statuses=bundles, bundle_steps=steps):
            named = sum(len(bundle.bundle_id) for bundle in bundles) + sum(len(step.bundle_id) for step in steps)
            return len(slots) * _STATUS_BYTES + named
        case LoadReport(slots=slots, bundles=bundles):
            return len(slots) * _SLOT_LOAD_BYTES + sum(_BUNDLE_LOAD_BYTES + len(bundle.bundle_id) for bundle in bundles)
        case _:
            return 0
