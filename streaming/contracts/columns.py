"""Columns of the core's records: types from annotations, rows from values, comments from the Avro schemas.

A column is nullable inside a struct, and in a table with a column ``kind``, because not every kind of record has it.
"""

import functools
import json
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from controlplane.codec.conversion import field_types, is_enum, union_members, unwrap
from controlplane.codec.schema_store import default_store

KIND_COLUMN = "kind"

_Convert: TypeAlias = Callable[[Any], Any]
_SCALARS: Mapping[type, type[DataType]] = {
    str: StringType,
    int: LongType,
    float: DoubleType,
    bool: BooleanType,
    bytes: BinaryType,
}


def column(name: str, data_type: DataType, comment: str, *, nullable: bool = False) -> StructField:
    """A column with the sentence that the reference page and ``DESCRIBE`` show."""
    return StructField(name, data_type, nullable, {"comment": comment})


@functools.cache
def spark_type(kind: Any) -> DataType:  # noqa: ANN401 - a type expression
    """The Spark type of a field of the core's records.

    Raises:
        TypeError: there is none (a defect of the caller).
    """
    kind = unwrap(kind)
    if is_enum(kind):
        return StringType()
    if members := [member for member in union_members(kind) if member is not type(None)]:
        return spark_type(members[0])
    if (fields := field_types(kind)) is not None:
        return StructType([StructField(name, spark_type(hint)) for name, hint in fields])
    if typing.get_origin(kind) is tuple:
        return ArrayType(spark_type(typing.get_args(kind)[0]))
    if _is_map(kind):
        return MapType(StringType(), spark_type(typing.get_args(kind)[1]))
    if kind in _SCALARS:
        return _SCALARS[kind]()
    message = f"{kind!r} has no Spark type"
    raise TypeError(message)


def _is_map(kind: Any) -> bool:  # noqa: ANN401 - a type expression
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


class RecordColumns:
    """The columns of the records of one topic.

    Args:
        kinds: each record type with its name in the column ``kind``; the column is left out when there is but one.
    """

    def __init__(self, kinds: Mapping[type, str]) -> None:
        self._kinds = dict(kinds)
        fields: dict[str, StructField] = {}
        for kind in kinds:
            comments = _comments(kind.__name__)
            for name, hint in field_types(kind) or ():
                fields.setdefault(name, column(name, spark_type(hint), comments[name], nullable=True))
        self._names = tuple(fields)
        self._converters = {kind: self._converter(kind) for kind in kinds}
        self.fields: tuple[StructField, ...] = (*self._kind_field(), *fields.values())

    @property
    def struct(self) -> StructType:
        """One struct of all the columns, as the decoder returns it for a record."""
        return StructType(list(self.fields))

    def row(self, payload: object) -> tuple[object, ...]:
        """The record's values in the order of :attr:`fields`; None for columns that its kind does not have."""
        return self._converters[type(payload)](payload)

    def _kind_field(self) -> tuple[StructField, ...]:
        if len(self._kinds) == 1:
            return ()
        names = ", ".join(f"`{name}`" for name in self._kinds.values())
        return (column(KIND_COLUMN, StringType(), f"Which record: {names}.", nullable=True),)

    def _converter(self, kind: type) -> Callable[[Any], tuple[object, ...]]:
        hints = dict(field_types(kind) or ())
        prefix = () if len(self._kinds) == 1 else (self._kinds[kind],)
        places = [(name, name in hints, _to_row(hints[name]) if name in hints else None) for name in self._names]

        def convert(payload: object) -> tuple[object, ...]:
            values = (_value(payload, name, convert_one) if there else None for name, there, convert_one in places)
            return (*prefix, *values)

        return convert


def _value(payload: object, name: str, convert: _Convert | None) -> object:
    value = getattr(payload, name)
    return value if convert is None or value is None else convert(value)


@functools.cache
def _to_row(kind: Any) -> _Convert | None:  # noqa: ANN401 - a type expression
    """The conversion of a value for Spark; None if the value is used unchanged."""
    kind = unwrap(kind)
    if is_enum(kind):
        return lambda member: member.value
    if members := [member for member in union_members(kind) if member is not type(None)]:
        return _to_row(members[0])
    if (fields := field_types(kind)) is not None:
        converters = [(name, _to_row(hint)) for name, hint in fields]
        if issubclass(kind, tuple) and all(convert is None for _, convert in converters):
            return None
        return lambda record: tuple([_value(record, name, convert) for name, convert in converters])
    if typing.get_origin(kind) is tuple:
        convert = _to_row(typing.get_args(kind)[0])
        return list if convert is None else lambda items: [convert(item) for item in items]
    if _is_map(kind):
        return dict
    return None


def _comments(record_name: str) -> dict[str, str]:
    schema = json.loads(default_store().current(record_name).text)
    return {each["name"]: each["doc"] for each in schema["fields"]}
