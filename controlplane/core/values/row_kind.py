"""Declarations of the kinds of rows in the routing table. Each subject has its own in ``rows.py``.

Keys, codec, feature levels, the rows that a decision changes and the rows that readers keep follow from a declaration.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

ImageT = TypeVar("ImageT")
IdT = TypeVar("IdT")
RowT = TypeVar("RowT")

TABLE_ID: Final = "main"
"""The id of the routing table, and the first part of every key."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowKind(Generic[ImageT, IdT, RowT]):
    """A kind of rows.

    Attributes:
        name: name of the kind in keys, ``slot`` in ``main/slot/17``; without a slash.
        record: class of the rows. Its name is that of the schema.
        levels: the feature level from which leaders write each version of the schema, from version 1; ascending.
        image: class of the image that contains the rows.
        ids: returns the identifiers of the rows of an image, ascending.
        row: returns the row of an identifier in an image; None without one.
        events: the event classes that may change such rows.
        touched: returns the identifiers of the rows that such an event may change.
        id_of: returns the identifier of a row.
        id_in_key: returns the identifier for the last part of a key; None if no row of this kind can have it.
    """

    name: str
    record: type[RowT]
    levels: tuple[int, ...] = (1,)
    image: type[ImageT]
    ids: Callable[[ImageT], Iterable[IdT]]
    row: Callable[[ImageT, IdT], RowT | None]
    events: tuple[type, ...]
    touched: Callable[[Any], Iterable[IdT]]
    id_of: Callable[[RowT], IdT]
    id_in_key: Callable[[str], IdT | None]

    def key(self, identifier: IdT) -> str:
        """The key of the row with this identifier, for example ``main/slot/17``."""
        return f"{TABLE_ID}/{self.name}/{identifier}"


AnyRowKind: TypeAlias = RowKind[Any, Any, Any]
"""A kind of rows with any image, identifier and class."""
