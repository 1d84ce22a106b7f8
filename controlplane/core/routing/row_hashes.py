"""The hashes of the rows of a routing table, from which its digest follows."""

from controlplane.core.values.entries import Entries


class RowHashes(Entries[str, int]):
    """The :func:`controlplane.core.values.digests.row_hash` of each live row, by key. Their digest is the table's."""

    __slots__ = ()

    def _share(self, key: str, value: int) -> int:  # noqa: ARG002 - the hash includes the key
        return value
