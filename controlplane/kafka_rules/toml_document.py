"""Reads the TOML files below ``infra``: values by name, and errors that name the place."""

import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from controlplane.errors import ConfigurationError

Table = Mapping[str, Any]


def parse_document(text: str, source: str, file_format: int) -> Table:
    """The document in a file.

    Args:
        text: the file's content.
        source: its name, for error messages.
        file_format: the only known value of ``format``.

    Raises:
        ConfigurationError: the text is not valid TOML, or has another format.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{source} is not a TOML file: {error}"
        raise ConfigurationError(message) from error
    if document.get("format") != file_format:
        message = f"{source} has format {document.get('format')!r}; this version reads format {file_format}"
        raise ConfigurationError(message)
    return document


def table_in(parent: Table, key: str, where: str) -> Table:
    """The table of that name.

    Raises:
        ConfigurationError: it is missing, or not a table.
    """
    value = parent.get(key)
    if not isinstance(value, dict):
        message = f"{where}: {key} is missing or not a table"
        raise ConfigurationError(message)
    return value


def tables_in(parent: Table, key: str, where: str) -> list[Table]:
    """The list of tables of that name, at least one.

    Raises:
        ConfigurationError: it is missing, empty, or not a list of tables.
    """
    value = parent.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        message = f"{where}: {key} is missing, empty, or not a list of tables"
        raise ConfigurationError(message)
    return value


def integer_in(table: Table, key: str, where: str) -> int:
    """The whole number of that name.

    Raises:
        ConfigurationError: it is missing, or not a whole number.
    """
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{where}: {key} is {value!r}; write a whole number"
        raise ConfigurationError(message)
    return value


def sentence_in(table: Table, key: str, where: str) -> str:
    """The text of that name.

    Raises:
        ConfigurationError: it is missing or empty.
    """
    value = table.get(key)
    if not isinstance(value, str) or not value:
        message = f"{where}: {key} is {value!r}; write a sentence"
        raise ConfigurationError(message)
    return value


def names_in(table: Table, key: str, where: str) -> list[str]:
    """The list of names of that name, at least one.

    Raises:
        ConfigurationError: it is missing, empty, or not a list of texts.
    """
    value = table.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(each, str) and each for each in value):
        message = f"{where}: {key} is {value!r}; write a list of names"
        raise ConfigurationError(message)
    return value


def refuse_unknown(table: Table, known: Collection[str], where: str) -> None:
    """Refuse keys that the format does not define.

    Raises:
        ConfigurationError: there is one; the message lists the known keys.
    """
    unknown = sorted(table.keys() - set(known))
    if unknown:
        message = f"{where}: {unknown[0]!r} is unknown; known are {', '.join(sorted(known))}"
        raise ConfigurationError(message)
