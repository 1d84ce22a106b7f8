"""What a subject declares of the rows that it has in the routing table: once for each kind, in its ``rows.py``.

Keys, codec, feature levels, the rows that a decision changes and what readers keep are derived from the declaration.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

ImageT = TypeVar("ImageT")
IdT = TypeVar("IdT")
RowT = TypeVar("RowT")

TABLE_ID: Final = "main"
"""The first part of every key: the name of the table."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowKind(Generic[ImageT, IdT, RowT]):
    """A kind of rows.

    Attributes:
        name: its name in keys: ``slot`` in ``main/slot/17``. No slash is in it.
        record: the class of its rows. It has the name of its schema.
        levels: for each version of that schema, from 1, the feature level from which leaders write it; ascending.
        image: the class of the image that has the rows.
        ids: the identifiers of the rows that an image has, ascending.
        row: the row of an identifier in an image; None if it has none.
        events: the classes of events that may change such rows.
        touched: the identifiers of the rows that one of those events may change.
        id_of: the identifier of a row.
        id_in_key: the identifier that stands in a key; None if no row of this kind has such a key.
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
"""A kind of rows of whatever image, identifier and class."""
