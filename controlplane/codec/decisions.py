"""Converts decisions to and from the records of the decision log.

A decision that fits into a message is one record. A larger one is written in parts, in order, in one transaction, under
one key. Each part repeats the scalar fields and has a slice of every list and map, also of the list within an event
(the slots of one ``SlotsAssigned``). Joining the parts restores exactly the decision that was cut. So every part is a
record of the same schema, and a query over all parts sees every moved slot once.

Reading is strict: the log is the state, so none of its decisions is skipped or guessed. A record that is not one of its
decisions, because it cannot be decoded or belongs to another log, is refused alone, and the next one is read. A
decision is written in the oldest version of its schema that can hold it, so that a reader that is not upgraded can read
on until something is used that it cannot know. It stops at a decision of a feature level that it does not know, and at
a schema that it does not know if the record has the key of the next decision.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias, cast, get_origin, get_type_hints

from controlplane.codec.conversion import field_types, from_datum, is_map, to_datum
from controlplane.codec.framing import Datum, Framing, default_framing, read_body
from controlplane.codec.needed_level import needed_level
from controlplane.codec.schema_levels import oldest_version_for, version_at
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import EVENT_TYPES
from controlplane.core.slots.certificate import Certificate
from controlplane.core.values.identifiers import Seq
from controlplane.errors import (
    ConfigurationError,
    InvalidInputError,
    InvariantViolationError,
    LogContinuityError,
    UnsupportedFeatureLevelError,
)

DEFAULT_MAX_PART_BYTES: Final = 900_000
"""Below librdkafka's ``message.max.bytes`` (1,000,000) and the broker's (1,048,588) with room for key and headers."""


def _long_list(kind: type) -> str | None:
    """The field of an event that may grow with the number of slots or nodes: its only tuple. None if it has none.

    Raises:
        InvariantViolationError: there are two, of which one would never be cut.
    """
    lists = [name for name, hint in get_type_hints(kind).items() if get_origin(hint) is tuple]
    if len(lists) > 1:
        raise InvariantViolationError(f"{kind.__name__} has the lists {', '.join(lists)}: an event may have only one")
    return lists[0] if lists else None


CUT_LISTS: Final = {kind.__name__: field for kind in EVENT_TYPES if (field := _long_list(kind)) is not None}
"""Events whose list may be cut between parts, with the list's field. Every other event stays whole."""

_NAME: Final = Decision.__name__
_CERTIFICATE_MAPS: Final = tuple(name for name, hint in field_types(Certificate) or () if is_map(hint))
_CERTIFICATE_LISTS: Final = tuple(name for name, hint in field_types(Certificate) or () if get_origin(hint) is tuple)
_WIDEST_PART_NUMBER: Final = 1 << 31
"""The number for all part numbers while sizes are tried, so that the real ones never take more bytes."""


def decision_key(seq: Seq) -> bytes:
    """The key of every record of a decision: its number in decimal."""
    return str(seq).encode()


def encode_decision(decision: Decision, max_part_bytes: int = DEFAULT_MAX_PART_BYTES) -> list[bytes]:
    """The values of a decision's records, in the order in which they are to be written.

    Raises:
        ConfigurationError: a single item of the decision takes more than ``max_part_bytes``.
        InvalidInputError: ``unencodable``: a value does not fit the schema (a defect of the caller).
    """
    datum = to_datum(decision)
    version = _schema_version(decision)
    whole = _framed({"part": 0, "part_count": 1, "continues": False, **datum}, version)
    if len(whole) <= max_part_bytes:
        return [whole]
    parts = list(_Cutter(datum, version, max_part_bytes).parts())
    return [_framed({**part, "part": number, "part_count": len(parts)}, version) for number, part in enumerate(parts)]


def check_schema_level(decision: Decision) -> None:
    """Check that readers of a decision's feature level can read its schema version.

    Raises:
        InvariantViolationError: the decision needs a version that is written only from a later level on (a defect of
            the caller).
    """
    version = _schema_version(decision)
    if version > version_at(_NAME, decision.feature_level):
        message = f"decision {decision.seq} of feature level {decision.feature_level} needs schema {_NAME}.v{version}"
        raise InvariantViolationError(message)


def _schema_version(decision: Decision) -> int:
    """The oldest version of the schema that can hold a decision."""
    return oldest_version_for(_NAME, needed_level(decision))


def _framed(datum: Datum, version: int) -> bytes:
    return default_framing().encode(_NAME, datum, version)


class _EventPiece(NamedTuple):
    """An event, or one element of an event's list; ``place`` is the position of the event in the decision."""

    place: int
    name: str
    record: Datum
    field: str | None
    element: object


_Piece: TypeAlias = tuple[str, object]
"""The smallest unit that is not cut: the name of its list or map, and the item."""


class _Cutter:
    """Cuts a decision into parts of at most ``max_part_bytes``."""

    def __init__(self, datum: Datum, version: int, max_part_bytes: int) -> None:
        self._datum = datum
        self._version = version
        self._max_part_bytes = max_part_bytes
        self._pieces = list(_pieces(datum))

    def parts(self) -> Iterator[Datum]:
        """The parts, without their numbers; found by halving, so that equal decisions are cut alike."""
        return self._halve(0, len(self._pieces))

    def _halve(self, start: int, end: int) -> Iterator[Datum]:
        part = self._part(start, end)
        if len(_framed(part, self._version)) <= self._max_part_bytes:
            yield part
            return
        if end - start <= 1:
            raise ConfigurationError(
                f"decision {self._datum['seq']} has an item that takes more than {self._max_part_bytes} bytes "
                "by itself: raise the limit of a part (and the broker's max.message.bytes)"
            )
        middle = (start + end) // 2
        yield from self._halve(start, middle)
        yield from self._halve(middle, end)

    def _part(self, start: int, end: int) -> Datum:
        grouped: dict[str, list[object]] = defaultdict(list)
        for name, item in self._pieces[start:end]:
            grouped[name].append(item)
        return {
            **self._datum,
            "part": _WIDEST_PART_NUMBER,
            "part_count": _WIDEST_PART_NUMBER,
            "continues": self._continues(start),
            "causes": grouped["causes"],
            "positions": _map(grouped["positions"]),
            "certificate": self._certificate(grouped, first=start == 0),
            "events": list(_events(grouped["events"])),
        }

    def _continues(self, start: int) -> bool:
        if start in (0, len(self._pieces)):
            return False
        before, after = self._pieces[start - 1][1], self._pieces[start][1]
        return isinstance(before, _EventPiece) and isinstance(after, _EventPiece) and before.place == after.place

    def _certificate(self, grouped: dict[str, list[object]], *, first: bool) -> Datum | None:
        certificate = cast("Datum | None", self._datum["certificate"])
        names = (*_CERTIFICATE_MAPS, *_CERTIFICATE_LISTS)
        if certificate is None or not (first or any(grouped[name] for name in names)):
            return None
        return {
            **certificate,
            **{name: _map(grouped[name]) for name in _CERTIFICATE_MAPS},
            **{name: grouped[name] for name in _CERTIFICATE_LISTS},
        }


def _pieces(datum: Datum) -> Iterator[_Piece]:
    yield from (("causes", cause) for cause in cast("list[object]", datum["causes"]))
    yield from (("positions", item) for item in cast("Datum", datum["positions"]).items())
    certificate = cast("Datum | None", datum["certificate"])
    if certificate is not None:
        for name in _CERTIFICATE_MAPS:
            yield from ((name, item) for item in cast("Datum", certificate[name]).items())
        for name in _CERTIFICATE_LISTS:
            yield from ((name, item) for item in cast("list[object]", certificate[name]))
    for place, (name, record) in enumerate(cast("list[tuple[str, Datum]]", datum["events"])):
        field = CUT_LISTS.get(name.rpartition(".")[2])
        elements = cast("Sequence[object]", record[field]) if field else ()
        if not elements:
            yield "events", _EventPiece(place, name, record, None, None)
        for element in elements:
            yield "events", _EventPiece(place, name, record, field, element)


def _events(pieces: list[object]) -> Iterator[tuple[str, Datum]]:
    for _, group in groupby(cast("list[_EventPiece]", pieces), key=lambda piece: piece.place):
        elements = list(group)
        first = elements[0]
        if first.field is None:
            yield first.name, first.record
        else:
            yield first.name, {**first.record, first.field: [piece.element for piece in elements]}


def _map(items: list[object]) -> Datum:
    return dict(cast("list[tuple[str, object]]", items))


OTHER_LOG: Final = "another_log"
"""The reason for which a decision of another log is refused."""


class DecisionAssembler:
    """Joins the records of the decision log into decisions, in log order. Not thread-safe.

    Reading has to begin at a decision's first record: at the log's start, or after a snapshot or a decision.

    Attributes:
        log_id: the log that is read; empty before its first decision, which determines it.
    """

    def __init__(self, framing: Framing | None = None, log_id: str = "", next_seq: Seq | None = None) -> None:
        """Begin before a decision.

        Args:
            framing: None stands for the package's schemas.
            log_id: the log that is read, if it is known.
            next_seq: the seq of the next decision, if it is known.
        """
        self.log_id = log_id
        self._next_seq = next_seq
        self._framing = framing or default_framing()
        self._pending: Datum | None = None
        self._next_part = 0
        self._part_count = 0

    @property
    def within_decision(self) -> bool:
        """Whether some parts of a decision were read and others are missing."""
        return self._pending is not None

    def is_next(self, key: bytes | None) -> bool:
        """Whether this is the key of the next decision; False if its seq is not known."""
        return self._next_seq is not None and key == decision_key(self._next_seq)

    def add(self, value: bytes | None, key: bytes | None = None) -> Decision | None:
        """Take the next record; return the decision that it completes, or None while parts are missing.

        A record with an unknown schema and without a key counts as foreign.

        Raises:
            InvalidInputError: the record does not belong to this log; read the next one. A decision of which parts were
                read is continued by it.
            UnsupportedFeatureLevelError: a newer version wrote the record: its feature level, its schema or a value in
                it is not known here.
            LogContinuityError: the record is not the part that has to follow.
        """
        datum = self.read(value, key)
        part, part_count = cast("int", datum.pop("part")), cast("int", datum.pop("part_count"))
        continues = cast("bool", datum.pop("continues"))
        self._expect(datum, part, part_count)
        joined = _joined_parts(self._pending, datum, continues=continues)
        if part + 1 < part_count:
            self._pending = joined
            self._next_seq = Seq(cast("int", joined["seq"]))
            self._next_part = part + 1
            self._part_count = part_count
            return None
        self._pending = None
        self._next_seq = Seq(cast("int", joined["seq"]) + 1)
        try:
            return from_datum(Decision, joined)
        except (InvalidInputError, ConfigurationError) as error:
            raise UnsupportedFeatureLevelError(
                f"decision {joined['seq']} holds what this version does not know ({error}): upgrade before reading on"
            ) from error

    def read(self, value: bytes | None, key: bytes | None = None) -> Datum:
        """Decode one record, of any part; the first one determines the log id.

        Raises:
            InvalidInputError: the record does not belong to this log.
            UnsupportedFeatureLevelError: a newer version wrote it.
        """
        if value is None:
            raise InvalidInputError("missing_value", "a record of the decision log has a value")
        try:
            schema, start = self._framing.unframe(value)
        except InvalidInputError as error:
            if error.reason == "unknown_fingerprint" and self._may_be_next(key):
                raise UnsupportedFeatureLevelError(
                    f"a decision was written with a schema that this version does not have ({error.detail}): "
                    "upgrade before reading on"
                ) from error
            raise
        if schema.name != _NAME:
            raise InvalidInputError("wrong_record_type", f"the record is a {schema.name}; decisions takes {_NAME}")
        # Not resolved to the newest schema: that would double the cost, and later fields have defaults in the core.
        datum = read_body(value, start, schema)
        log_id = cast("str", datum["log_id"])
        if self.log_id not in {"", log_id}:
            raise InvalidInputError(
                OTHER_LOG, f"decision {datum['seq']} belongs to log {log_id!r:.80}, but this is log {self.log_id!r}"
            )
        level = cast("int", datum["feature_level"])
        if level > FEATURE_LEVEL:
            raise UnsupportedFeatureLevelError(
                f"decision {datum['seq']} needs feature level {level}, but this version knows {FEATURE_LEVEL}: "
                "upgrade before reading on"
            )
        self.log_id = log_id
        return datum

    def _may_be_next(self, key: bytes | None) -> bool:
        """Whether a record with this key has to be taken for the log's next decision, regardless of its value."""
        if self._next_seq is not None:
            return self.is_next(key)
        return not self.log_id or (key is not None and key.isdigit())

    def _expect(self, datum: Datum, part: int, part_count: int) -> None:
        """Check that parts are complete and in order, as written in one transaction and read in read_committed."""
        expected = (0, part_count) if self._pending is None else (self._next_part, self._part_count)
        if (part, part_count) != expected or not 0 <= part < part_count:
            raise LogContinuityError(
                f"part {part} of {part_count} of decision {datum['seq']} was read instead of part {expected[0]} of "
                f"{expected[1]}: read from a decision's first record on, in read_committed"
            )


def _joined_parts(before: Datum | None, after: Datum, *, continues: bool) -> Datum:
    events = [] if before is None else cast("list[tuple[str, Datum]]", before["events"])
    more = cast("list[tuple[str, Datum]]", after["events"])
    if continues:
        if not events or not more or events[-1][0] != more[0][0]:
            raise LogContinuityError(f"decision {after['seq']}: a part continues an event that is missing")
        joined = cast("Datum", _joined(events[-1][1], more[0][1], f"decision {after['seq']}, event {more[0][0]}"))
        events, more = [*events[:-1], (events[-1][0], joined)], more[1:]
    if before is None:
        return after
    rest = cast("Datum", _joined({**before, "events": []}, {**after, "events": []}, f"decision {after['seq']}"))
    return {**rest, "events": [*events, *more]}


def _joined(before: object, after: object, path: str) -> object:
    """Join two values: lists one after the other, maps by their keys; other values have to be equal."""
    if isinstance(before, list) and isinstance(after, list):
        return before + after
    if isinstance(before, dict) and isinstance(after, dict):
        shared = {key: _joined(before[key], after[key], f"{path}.{key}") for key in before.keys() & after.keys()}
        return {**before, **after, **shared}
    if after is None or before == after:
        return before
    raise LogContinuityError(f"{path} is {before!r:.80} in one part and {after!r:.80} in the next")
