"""Values of the core to and from plain form: dicts, lists, strings, numbers, booleans and None.

One converter serves the log's encoding, snapshots, digests and ``--format json``, so they cannot disagree. A value's
plain form follows its dataclass or named tuple field by field; a member of a union of dataclasses carries its class
name under ``"type"``. Equal values have equal canonical bytes.
"""

import dataclasses
import enum
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from controlplane.errors import InvalidInputError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
T = TypeVar("T")

TYPE_FIELD = "type"
"""The key under which a union's member names its class."""


def to_plain(value: object) -> Plain:
    """The plain form of a value; mappings keep their string keys, in sorted order.

    Raises:
        TypeError: the value is of a kind that has no plain form (a defect of the caller).
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, enum.Enum):
        return to_plain(value.value)
    names = _field_names(type(value))  # type: ignore[arg-type]  # classes are hashable
    if names is not None:
        return {name: _member(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [_member(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _member(value[key]) for key in sorted(value)}
    message = f"{type(value).__name__} has no plain form"
    raise TypeError(message)


def tagged(value: object) -> dict[str, Plain]:
    """The plain form of a dataclass with its class name under ``"type"``."""
    plain = to_plain(value)
    if not isinstance(plain, dict):
        message = f"{type(value).__name__} is not a record"
        raise TypeError(message)
    return {TYPE_FIELD: type(value).__name__, **plain}


def from_plain(expected: type[T], plain: Plain) -> T:
    """The value of type ``expected`` whose plain form is given.

    Raises:
        InvalidInputError: a field is missing or has another type; the detail names the path to it.
    """
    return typing.cast("T", _parser(expected)(plain, expected.__name__))  # type: ignore[arg-type]  # classes are hashable


def canonical_bytes(value: object) -> bytes:
    """The one byte form of a value: JSON with sorted keys and no spaces, UTF-8."""
    return json.dumps(_member(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest_hex(value: object) -> str:
    """SHA-256 over the canonical bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


_UNION_MEMBERS: set[type] = set()


def union_member(kind: type[T]) -> type[T]:
    """Class decorator for the members of a union: wherever they stand, they are written with their class name.

    It stands at the class and not at the union, so that a value's form does not depend on what else was imported.
    """
    _UNION_MEMBERS.add(kind)
    return kind


def _member(value: object) -> Plain:
    return tagged(value) if type(value) in _UNION_MEMBERS else to_plain(value)


@functools.cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


_Parser: TypeAlias = Callable[[Plain, str], object]


@functools.cache
def _parser(expected: Any) -> _Parser:  # noqa: ANN401 - a type expression: a class, a union, a generic alias
    origin = typing.get_origin(expected)
    if isinstance(expected, typing.NewType):
        return _parser(expected.__supertype__)
    if origin in (typing.Union, types.UnionType):
        return _union_parser(typing.get_args(expected))
    if origin is tuple:
        return _tuple_parser(_parser(typing.get_args(expected)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_parser(_parser(typing.get_args(expected)[1]))
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return _enum_parser(expected)
    if _field_names(expected) is not None:
        return _record_parser(expected)
    return _scalar_parser(expected)


def _refuse(path: str, wanted: str, plain: Plain) -> InvalidInputError:
    return InvalidInputError("wrong_type", f"{path} is {plain!r:.80}, expected {wanted}")


def _scalar_parser(expected: type) -> _Parser:
    def parse(plain: Plain, path: str) -> object:
        if expected is float and isinstance(plain, int) and not isinstance(plain, bool):
            return float(plain)
        if type(plain) is not expected:
            raise _refuse(path, expected.__name__, plain)
        return plain

    return parse


def _enum_parser(expected: type[enum.Enum]) -> _Parser:
    def parse(plain: Plain, path: str) -> object:
        try:
            return expected(plain)
        except ValueError:
            raise _refuse(path, f"one of {[member.value for member in expected]}", plain) from None

    return parse


def _tuple_parser(item: _Parser) -> _Parser:
    def parse(plain: Plain, path: str) -> object:
        if not isinstance(plain, list | tuple):
            raise _refuse(path, "a list", plain)
        return tuple(item(element, f"{path}[{index}]") for index, element in enumerate(plain))

    return parse


def _mapping_parser(item: _Parser) -> _Parser:
    def parse(plain: Plain, path: str) -> object:
        if not isinstance(plain, Mapping):
            raise _refuse(path, "a map", plain)
        return {key: item(plain[key], f"{path}[{key!r}]") for key in sorted(plain)}

    return parse


def _record_parser(expected: Any) -> _Parser:  # noqa: ANN401 - a dataclass or named tuple
    hints = typing.get_type_hints(expected)
    fields = {name: _parser(hints[name]) for name in _field_names(expected) or ()}

    def parse(plain: Plain, path: str) -> object:
        if not isinstance(plain, Mapping):
            raise _refuse(path, expected.__name__, plain)
        missing = [name for name in fields if name not in plain]
        if missing:
            detail = f"{path} lacks {', '.join(missing)}"
            raise InvalidInputError("missing_field", detail)
        return expected(**{name: field(plain[name], f"{path}.{name}") for name, field in fields.items()})

    return parse


def _union_parser(members: tuple[Any, ...]) -> _Parser:
    records = {member.__name__: _parser(member) for member in members if _is_record(member)}
    scalars = [_parser(member) for member in members if not _is_record(member) and member is not type(None)]
    optional = type(None) in members
    untagged = list(records.values()) if len(records) == 1 else []

    def parse(plain: Plain, path: str) -> object:
        if plain is None and optional:
            return None
        if isinstance(plain, Mapping) and plain.get(TYPE_FIELD) in records:
            return records[str(plain[TYPE_FIELD])](plain, path)
        for candidate in (*untagged, *scalars):
            return candidate(plain, path)
        raise _refuse(path, f"one of {sorted(records)}", plain)

    return parse


def _is_record(member: Any) -> bool:  # noqa: ANN401 - a type expression
    return isinstance(member, type) and _field_names(member) is not None
