"""Places that tests know to be on this machine's disk."""

from pathlib import Path

from streaming.storage import StoragePath


def local(place: StoragePath) -> Path:
    """The place as a path."""
    assert isinstance(place, Path)
    return place
