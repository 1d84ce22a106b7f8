"""Converts values of the core to and from those of the Avro library; compiled once for each type from its annotations.

The schema of a value follows its dataclass or named tuple field by field; ``tests/unit/codec/test_drift.py`` compares
them in both directions, so that no field can be missing on either side.

==========================  ====================================================
in the core                 in Avro
==========================  ====================================================
dataclass, named tuple      record of the same name and the same fields
``str``                     string
enum                        string, the member's value
``int``, ``NewType`` of it  long
``float``                   double
``bool``, ``bytes``         boolean, bytes
``tuple[X, ...]``           array of X
``Mapping[str, X]``         map of X, written in the order of the keys
``X | None``                union of null and X
union of dataclasses        union of records, as pairs of full name and record
==========================  ====================================================
"""

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, TypeVar, cast

from controlplane.codec.framing import Datum
from controlplane.codec.schema_store import NAMESPACE
from controlplane.core.values.canonical import later_defaults
from controlplane.errors import InvalidInputError

T = TypeVar("T")

_Convert: TypeAlias = Callable[[Any], Any]


def to_datum(value: object) -> Datum:
    """The record of a dataclass or named tuple, for the Avro library.

    Raises:
        TypeError: the value's type contains something without an Avro form (a defect of the caller).
    """
    kind: Any = type(value)
    return cast("Datum", _required(_encoder(kind), kind)(value))


def from_datum(expected: type[T], datum: Datum) -> T:
    """The value of type ``expected`` from a record of the Avro library.

    Raises:
        InvalidInputError: ``unknown_<field>``: a text is not a value of its enum; the detail names the field.
        ConfigurationError: the values of a policy contradict each other.
    """
    kind: Any = expected
    return cast("T", _required(_decoder(kind, kind.__name__), kind)(datum))


def _required(convert: _Convert | None, kind: type) -> _Convert:
    if convert is None:
        raise TypeError(f"{kind.__name__} is not a record")
    return convert


@functools.cache
def field_types(kind: type) -> tuple[tuple[str, Any], ...] | None:
    """The fields of a dataclass or named tuple with their types, in order; None for every other type."""
    if dataclasses.is_dataclass(kind):
        names = tuple(each.name for each in dataclasses.fields(kind))
    elif hasattr(kind, "_fields"):
        names = tuple(kind._fields)
    else:
        return None
    hints = typing.get_type_hints(kind)
    return tuple((name, hints[name]) for name in names)


def union_members(kind: object) -> tuple[Any, ...]:
    """The members of a union type, None's type included; empty for every other type."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else ()


def unwrap(kind: Any) -> Any:  # noqa: ANN401 - a type expression
    """The type that a ``NewType`` stands for; every other type unchanged."""
    return unwrap(kind.__supertype__) if isinstance(kind, typing.NewType) else kind


def is_enum(kind: object) -> bool:
    """Whether the type is an enum class."""
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def is_map(kind: object) -> bool:
    """Whether the type is a mapping."""
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def element_type(kind: object) -> Any:  # noqa: ANN401 - a type expression
    """The type of the elements of a tuple or of the values of a mapping; None if the type is neither."""
    origin = typing.get_origin(kind)
    if origin is tuple:
        return typing.get_args(kind)[0]
    return typing.get_args(kind)[1] if is_map(kind) else None


# None stands for "unchanged": most fields are numbers and texts, and no call is the fastest conversion.


@functools.cache
def _encoder(kind: Any) -> _Convert | None:  # noqa: ANN401 - a type expression
    kind = unwrap(kind)
    if is_enum(kind):
        return _value_of
    if members := union_members(kind):
        return _union_encoder(members)
    if field_types(kind) is not None:
        return _record_encoder(kind)
    element = element_type(kind)
    if element is None:
        return None
    convert = _encoder(element)
    if typing.get_origin(kind) is tuple:
        return None if convert is None else lambda items: [convert(item) for item in items]
    if convert is None:
        return lambda mapping: {key: mapping[key] for key in sorted(mapping)}
    return lambda mapping: {key: convert(mapping[key]) for key in sorted(mapping)}


def _value_of(member: enum.Enum) -> object:
    return member.value


def _record_encoder(kind: type) -> _Convert:
    fields = field_types(kind) or ()
    names = [name for name, _ in fields]
    converts = [_encoder(hint) for _, hint in fields]
    take = _taker(attrgetter, names)
    if defaults := later_defaults(kind):
        return _growing_record_encoder(dict(zip(names, converts, strict=True)), defaults)
    if not any(converts):
        return lambda value: dict(zip(names, take(value), strict=True))
    return lambda value: {
        name: item if convert is None else convert(item)
        for name, convert, item in zip(names, converts, take(value), strict=True)
    }


def _growing_record_encoder(converts: Mapping[str, _Convert | None], defaults: Mapping[str, Any]) -> _Convert:
    """The encoder of a record that older schemas hold, too: later fields with the schema's default are left out."""

    def encode(value: object) -> Datum:
        items = {name: getattr(value, name) for name in converts}
        return {
            name: item if (convert := converts[name]) is None else convert(item)
            for name, item in items.items()
            if name not in defaults or item != defaults[name]
        }

    return encode


def _taker(getter: Callable[..., _Convert], names: Sequence[str]) -> _Convert:
    """A getter of all fields at once, as a tuple even if there is only one."""
    take = getter(*names)
    return take if len(names) > 1 else lambda value: (take(value),)


def _union_encoder(members: Sequence[Any]) -> _Convert | None:
    kinds = [member for member in members if member is not type(None)]
    if len(kinds) == 1:
        convert = _encoder(kinds[0])
        return None if convert is None else lambda value: None if value is None else convert(value)
    encoders = {member: (f"{NAMESPACE}.{member.__name__}", _required(_encoder(member), member)) for member in kinds}

    def encode(value: object) -> object:
        name, convert = encoders[type(value)]
        return name, convert(value)

    return encode


@functools.cache
def _decoder(kind: Any, path: str) -> _Convert | None:  # noqa: ANN401 - a type expression
    kind = unwrap(kind)
    if is_enum(kind):
        return _enum_decoder(kind, path)
    if members := union_members(kind):
        return _union_decoder(members, path)
    if field_types(kind) is not None:
        return _record_decoder(kind)
    element = element_type(kind)
    if element is None:
        return None
    if typing.get_origin(kind) is tuple and (plain := _plain_record(element)) is not None:
        make, take = plain
        return lambda items: tuple(map(make, map(take, items)))  # no call of Python for each item
    convert = _decoder(element, path)
    if typing.get_origin(kind) is tuple:
        return tuple if convert is None else lambda items: tuple([convert(item) for item in items])
    if convert is None:
        return lambda mapping: {key: mapping[key] for key in sorted(mapping)}
    return lambda mapping: {key: convert(mapping[key]) for key in sorted(mapping)}


def _enum_decoder(kind: type[enum.Enum], path: str) -> _Convert:
    values = {member.value: member for member in kind}

    def decode(text: str) -> enum.Enum:
        member = values.get(text)
        if member is None:
            reason = f"unknown_{path.rpartition('.')[2]}"
            raise InvalidInputError(reason, f"{path} is {text!r:.80}, expected one of {', '.join(values)}")
        return member

    return decode


def _record_decoder(kind: type) -> _Convert:
    if (plain := _plain_record(kind)) is not None:
        make, take = plain
        return lambda datum: make(take(datum))
    fields = field_types(kind) or ()
    converts = [_decoder(hint, f"{kind.__name__}.{name}") for name, hint in fields]
    if later_defaults(kind):
        return _growing_record_decoder(
            kind, {name: convert for (name, _), convert in zip(fields, converts, strict=True)}
        )
    take = _taker(itemgetter, [name for name, _ in fields])
    if not any(converts):
        return lambda datum: kind(*take(datum))
    return lambda datum: kind(
        *[item if convert is None else convert(item) for convert, item in zip(converts, take(datum), strict=True)]
    )


def _plain_record(kind: Any) -> tuple[_Convert, _Convert] | None:  # noqa: ANN401 - a type expression
    """How a record that is a tuple is made of its values, and these are taken from a datum; None if they are converted.

    Of as many fields as are taken: its own constructor has nothing to add.
    """
    fields = field_types(kind)
    if fields is None or not issubclass(kind, tuple) or later_defaults(kind):
        return None
    if any(_decoder(hint, f"{kind.__name__}.{name}") for name, hint in fields):
        return None
    return functools.partial(tuple.__new__, kind), _taker(itemgetter, [name for name, _ in fields])


def _growing_record_decoder(kind: type, converts: Mapping[str, _Convert | None]) -> _Convert:
    """The decoder of a record that older schemas hold with fewer fields: missing fields have their defaults."""

    def decode(datum: Datum) -> object:
        return kind(
            **{
                name: datum[name] if convert is None else convert(datum[name])
                for name, convert in converts.items()
                if name in datum
            }
        )

    return decode


def _union_decoder(members: Sequence[Any], path: str) -> _Convert | None:
    kinds = [member for member in members if member is not type(None)]
    if len(kinds) == 1:
        convert = _decoder(kinds[0], path)
        return None if convert is None else lambda value: None if value is None else convert(value)
    decoders = {f"{NAMESPACE}.{member.__name__}": _required(_decoder(member, path), member) for member in kinds}

    def decode(pair: tuple[str, Datum]) -> object:
        name, datum = pair
        return decoders[name](datum)

    return decode
