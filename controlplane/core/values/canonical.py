"""Conversion of values to and from canonical form: dicts, lists, strings, numbers, booleans and None.

One converter serves the encoding of the log, snapshots, digests and ``--format json``, so that they agree. The
canonical form of a dataclass or named tuple has an entry for each field. A member of a union of dataclasses also has
its class name under ``"type"``.

Canonical bytes are the canonical form as JSON. Equal values have equal canonical bytes. The bytes omit a field marked
:func:`later` that has its default; the canonical form has every field.
"""

import dataclasses
import enum
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from controlplane.errors import InvalidInputError

CanonicalValue: TypeAlias = "bool | int | float | str | list[CanonicalValue] | dict[str, CanonicalValue] | None"
T = TypeVar("T")

TYPE_FIELD = "type"
"""The key of the class name in the form of a union's member."""
_SINCE_LEVEL: Final = "since_level"


def later(*, since_level: int) -> Mapping[str, int]:
    """Metadata of a dataclass field that was added after a release.

    Such a field needs a default. Canonical bytes omit the field while it has its default, so that digests of older logs
    stay valid. A canonical form without the field parses to the default.

    Args:
        since_level: lowest feature level of a log that may hold another value than the default.
    """
    return {_SINCE_LEVEL: since_level}


def to_canonical(value: object) -> CanonicalValue:
    """The canonical form of a value, with every field. Mappings have text keys, in sorted order.

    Raises:
        TypeError: the value's class has no canonical form, which is an error of the caller.
    """
    plain = _WHOLE.of(value)
    if type(value) in _UNION_MEMBERS and isinstance(plain, dict):
        del plain[TYPE_FIELD]
    return plain


def from_canonical(expected: type[T], plain: CanonicalValue) -> T:
    """The value of type ``expected`` that has the given canonical form.

    Raises:
        InvalidInputError: a field is missing or has the wrong type; the detail has its path.
    """
    return typing.cast("T", _parser(expected)(plain, expected.__name__))  # type: ignore[arg-type]  # classes are hashable


def parsed_text(name: str, text: str, known: CanonicalValue) -> CanonicalValue:
    """A value parsed from text, of the same type as another value.

    Args:
        name: the value's name, for messages.
        text: the text to parse.
        known: a value of the expected type: str, bool, int or float.

    Raises:
        InvalidInputError: the text is not a value of that type.
    """
    if isinstance(known, str):
        return text
    kind = type(known)
    try:
        if isinstance(known, bool):
            return {"true": True, "false": False}[text]
        return int(text) if isinstance(known, int) else float(text)  # int() raises ValueError for too many digits, too
    except (ValueError, KeyError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, kind.__name__)
        detail = f"{name} is {text!r:.80}, expected {wanted}"
        raise InvalidInputError("wrong_type", detail) from None


def canonical_bytes(value: object) -> bytes:
    """The canonical bytes of a value: JSON with sorted keys and without spaces, in UTF-8.

    Fields marked :func:`later` are omitted while they have their defaults.
    """
    if type(value) is int:  # keys of entries and numbers of the log: most calls while a log is folded
        return b"%d" % value
    return _JSON.encode(_CANONICAL.of(value)).encode()


def digest_hex(value: object) -> str:
    """SHA-256 of the canonical bytes of a value, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


_UNION_MEMBERS: set[type] = set()


def union_member(kind: type[T]) -> type[T]:
    """Class decorator for members of a union: their canonical form always has the class name.

    The class is marked, not the union, so that the canonical form does not depend on the modules that are imported.
    """
    _UNION_MEMBERS.add(kind)
    return kind


_WRITTEN_AS_PAIRS: set[type] = set()


def written_as_pairs(kind: type[T]) -> type[T]:
    """Class decorator for generic mappings ``Kind[K, V]`` whose keys need not be text.

    Their canonical form is a list of [key, value] pairs in their order. The class has to accept such pairs as its only
    argument.
    """
    _WRITTEN_AS_PAIRS.add(kind)
    return kind


_Form: TypeAlias = Callable[[Any], CanonicalValue]
_SCALARS: Final = (type(None), bool, int, float, str)
_OWN_FORM: Final = frozenset(_SCALARS)


class _Forms(dict[type, "_Form | None"]):
    """The conversion to canonical form by class, built once per class. None means that the value is its own form.

    The conversions are kept because digests dominate the cost of folding a log, and a log has many values of few
    classes.
    """

    def __init__(self, *, whole: bool) -> None:
        """Keep every field if ``whole``, else omit later fields that have their defaults."""
        super().__init__(dict.fromkeys(_SCALARS))
        self._whole = whole

    def of(self, value: object) -> CanonicalValue:
        """The canonical form of a value; that of a union's member has its class name."""
        form = self[type(value)]
        return typing.cast("CanonicalValue", value) if form is None else form(value)

    def __missing__(self, kind: type) -> "_Form | None":
        form = self[kind] = self._found(kind)
        return form

    def _found(self, kind: type) -> "_Form | None":
        if issubclass(kind, _SCALARS):
            return None
        if issubclass(kind, enum.Enum):
            return lambda value: self.of(value.value)
        names = _field_names(kind)  # type: ignore[arg-type]  # classes are hashable
        if names is not None:
            return self._record(kind, names)
        if issubclass(kind, tuple | list):
            return lambda items: [self.of(item) for item in items]
        if kind in _WRITTEN_AS_PAIRS:
            return lambda entries: [[self.of(key), self.of(value)] for key, value in entries.items()]
        if issubclass(kind, Mapping):
            return lambda mapping: {str(key): self.of(mapping[key]) for key in sorted(mapping)}
        message = f"{kind.__name__} has no canonical form"
        raise TypeError(message)

    def _record(self, kind: type, names: tuple[str, ...]) -> _Form:
        tag = {TYPE_FIELD: kind.__name__} if kind in _UNION_MEMBERS else {}
        defaults = {} if self._whole else later_defaults(kind)
        of = self.of

        def whole_record(value: object) -> CanonicalValue:
            plain: dict[str, CanonicalValue] = dict(tag)
            for name in names:
                item = getattr(value, name)
                plain[name] = item if type(item) in _OWN_FORM else of(item)
            return plain

        def record(value: object) -> CanonicalValue:
            plain: dict[str, CanonicalValue] = dict(tag)
            for name in names:
                item = getattr(value, name)
                if name not in defaults or item != defaults[name]:
                    plain[name] = item if type(item) in _OWN_FORM else of(item)
            return plain

        return record if defaults else whole_record


_WHOLE: Final = _Forms(whole=True)
_CANONICAL: Final = _Forms(whole=False)
_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@functools.cache
def later_defaults(kind: type) -> Mapping[str, Any]:
    """The defaults of the fields of a class that are marked :func:`later`, by field."""
    if not dataclasses.is_dataclass(kind):
        return {}
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(kind)
        if _SINCE_LEVEL in field.metadata
    }


@functools.cache
def later_levels(kind: type) -> Mapping[str, int]:
    """The feature levels of the fields of a class that are marked :func:`later`, by field."""
    if not dataclasses.is_dataclass(kind):
        return {}
    levels = {field.name: field.metadata.get(_SINCE_LEVEL) for field in dataclasses.fields(kind)}
    return {name: level for name, level in levels.items() if level is not None}


def later_fields_in_use(record: object) -> Mapping[str, int]:
    """The feature levels of the later fields of a record that do not have their default, by field."""
    kind: Any = type(record)
    defaults = later_defaults(kind)
    return {name: level for name, level in later_levels(kind).items() if getattr(record, name) != defaults[name]}


@functools.cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None)


_Parser: TypeAlias = Callable[[CanonicalValue, str], object]


@functools.cache
def _parser(expected: Any) -> _Parser:  # noqa: ANN401 - a type expression: a class, a union, a generic alias
    origin = typing.get_origin(expected)
    if isinstance(expected, typing.NewType):
        return _parser(expected.__supertype__)
    if origin in (typing.Union, types.UnionType):
        return _union_parser(typing.get_args(expected))
    if origin is tuple:
        items = typing.get_args(expected)
        return _tuple_parser(_parser(items[0])) if items[1:] == (...,) else _fixed_parser(*map(_parser, items))
    if origin in _WRITTEN_AS_PAIRS:
        return _pairs_parser(origin, *map(_parser, typing.get_args(expected)))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_parser(_parser(typing.get_args(expected)[1]))
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return _enum_parser(expected)
    if _field_names(expected) is not None:
        return _record_parser(expected)
    return _scalar_parser(expected)


def _refuse(path: str, wanted: str, plain: CanonicalValue) -> InvalidInputError:
    return InvalidInputError("wrong_type", f"{path} is {plain!r:.80}, expected {wanted}")


def _scalar_parser(expected: type) -> _Parser:
    def parse(plain: CanonicalValue, path: str) -> object:
        if expected is float and isinstance(plain, int) and not isinstance(plain, bool):
            return float(plain)
        if type(plain) is not expected:
            raise _refuse(path, expected.__name__, plain)
        return plain

    return parse


def _enum_parser(expected: type[enum.Enum]) -> _Parser:
    def parse(plain: CanonicalValue, path: str) -> object:
        try:
            return expected(plain)
        except ValueError:
            raise _refuse(path, f"one of {', '.join(str(member.value) for member in expected)}", plain) from None

    return parse


def _tuple_parser(item: _Parser) -> _Parser:
    def parse(plain: CanonicalValue, path: str) -> object:
        if not isinstance(plain, list | tuple):
            raise _refuse(path, "a list", plain)
        return tuple(item(element, f"{path}[{index}]") for index, element in enumerate(plain))

    return parse


def _fixed_parser(*items: _Parser) -> _Parser:
    def parse(plain: CanonicalValue, path: str) -> object:
        if not isinstance(plain, list | tuple) or len(plain) != len(items):
            raise _refuse(path, f"a list of {len(items)}", plain)
        return tuple(
            item(element, f"{path}[{index}]") for index, (item, element) in enumerate(zip(items, plain, strict=True))
        )

    return parse


def _pairs_parser(kind: type, key: _Parser, value: _Parser) -> _Parser:
    items = _tuple_parser(_fixed_parser(key, value))

    def parse(plain: CanonicalValue, path: str) -> object:
        pairs = typing.cast("tuple[tuple[object, object], ...]", items(plain, path))
        made = kind(pairs)
        if len(made) != len(pairs):
            twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
            raise InvalidInputError("wrong_type", f"{path}: the key {twice!r} stands twice")
        return made

    return parse


def _mapping_parser(item: _Parser) -> _Parser:
    def parse(plain: CanonicalValue, path: str) -> object:
        if not isinstance(plain, Mapping):
            raise _refuse(path, "a map", plain)
        return {key: item(plain[key], f"{path}[{key!r}]") for key in sorted(plain)}

    return parse


def _record_parser(expected: Any) -> _Parser:  # noqa: ANN401 - a dataclass or named tuple
    hints = typing.get_type_hints(expected)
    fields = {name: _parser(hints[name]) for name in _field_names(expected) or ()}
    later = later_defaults(expected)

    def parse(plain: CanonicalValue, path: str) -> object:
        if not isinstance(plain, Mapping):
            raise _refuse(path, expected.__name__, plain)
        missing = [name for name in fields if name not in plain and name not in later]
        if missing:
            detail = f"{path} lacks {', '.join(missing)}"
            raise InvalidInputError("missing_field", detail)
        known = {name: field for name, field in fields.items() if name in plain} if later else fields
        return expected(**{name: field(plain[name], f"{path}.{name}") for name, field in known.items()})

    return parse


def _union_parser(members: tuple[Any, ...]) -> _Parser:
    records = {member.__name__: _parser(member) for member in members if _is_record(member)}
    scalars = [_parser(member) for member in members if not _is_record(member) and member is not type(None)]
    optional = type(None) in members
    untagged = list(records.values()) if len(records) == 1 else []

    def parse(plain: CanonicalValue, path: str) -> object:
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
