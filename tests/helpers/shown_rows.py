"""The rows that a routing table shows, found by its fields: a new kind of rows needs no line here."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import TableRow


def shown_rows(table: RoutingTable) -> list[TableRow]:
    """All rows of a table, field by field; slots without a row are among them."""
    shown: list[Any] = []
    for each in fields(table):
        value = getattr(table, each.name)
        shown += value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
    return [row for row in shown if isinstance(row, get_args(TableRow))]
