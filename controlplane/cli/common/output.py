"""Results on standard output: tables for people, JSON for programs. Everything else goes to standard error."""

import json
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

import click

from controlplane.core.values.canonical import CanonicalValue
from controlplane.inspection.records import Record, Records

DEFAULT_LIMIT = 50
"""The number of rows that a table prints if its length grows with the log."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


class OutputFormat(Enum):
    """The output formats of reading commands."""

    TEXT = "text"
    JSON = "json"


def format_option(command: _Command) -> _Command:
    """The ``--format`` option of every reading command."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(OutputFormat, case_sensitive=False),
        default=OutputFormat.TEXT,
        show_default="text",
        help="A table for people, or JSON for programs.",
    )(command)


def limit_option(command: _Command) -> _Command:
    """The ``--limit`` option of commands whose tables may be long."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=DEFAULT_LIMIT,
        metavar="N",
        help="The most rows that a table prints; 0 prints all. JSON always has all.",
    )(command)


def print_json(value: CanonicalValue) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_result(result: Record | Sequence[Record], columns: Sequence[str], output_format: OutputFormat) -> None:
    """Print one row (a JSON object) or several (a JSON list) in the given format.

    Args:
        result: what to print.
        columns: the fields of the table, in order; the JSON has all fields.
        output_format: a table or JSON.
    """
    if output_format is OutputFormat.TEXT:
        print_rows([result] if isinstance(result, dict) else result, columns)
    else:
        print_json(result if isinstance(result, dict) else list(result))


def print_rows(rows: Records, columns: Sequence[str], title: str = "") -> None:
    """Print rows as a table: with lines on a terminal, as aligned text elsewhere.

    Args:
        rows: the rows; a missing field is left empty.
        columns: the fields, in order.
        title: a line above the table.
    """
    cells = [[cell_text(row.get(column)) for column in columns] for row in rows]
    headings = [column.replace("_", " ") for column in columns]
    if sys.stdout.isatty():
        _print_drawn(cells, headings, title)
    else:
        _print_plain(cells, headings, title)


def print_first_rows(rows: Records, columns: Sequence[str], limit: int) -> None:
    """Print the first rows as a table, and how many more there are; with a limit of 0, all."""
    shown = rows[:limit] if limit else rows
    print_rows(shown, columns)
    if len(shown) < len(rows):
        click.echo(f"... and {len(rows) - len(shown):,} more: --limit 0 prints all")


def print_last_rows(rows: Records, columns: Sequence[str], limit: int) -> None:
    """Print the last rows as a table, and before it the number of omitted ones; with a limit of 0, all."""
    shown = rows[-limit:] if limit else rows
    if len(shown) < len(rows):
        click.echo(f"{len(rows) - len(shown):,} more rows before these: --limit 0 prints all")
    print_rows(shown, columns)


def cell_text(value: CanonicalValue) -> str:
    """A value in a table's cell: "-" for nothing, lists with commas, maps as ``key=value``."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case list():
            return ", ".join(cell_text(item) for item in value) or "-"
        case dict():
            return ", ".join(f"{key}={cell_text(item)}" for key, item in value.items()) or "-"
        case _:
            return str(value)


def _print_drawn(cells: list[list[str]], headings: Sequence[str], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for heading in headings:
        table.add_column(heading)
    for row in cells:
        # Text, so that a value in square brackets is not parsed as markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _print_plain(cells: list[list[str]], headings: Sequence[str], title: str) -> None:
    if title:
        click.echo(title)
    lines = [list(headings), *cells]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headings))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
