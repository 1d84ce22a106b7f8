"""Where tables and checkpoints are: a folder, or a prefix of keys in an object store with S3's interface.

Both are addressed alike, as :class:`pathlib.Path` does it, so what opens tables need not know which of them it is.
"""

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from controlplane.errors import ConfigurationError

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

_SCHEMES: Final = ("s3a", "s3")
_FILE_URI: Final = re.compile(r"file:(?:/|///)(?!/)")


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """A prefix of keys in a bucket, or one key.

    Endpoint, region and credentials are those of the environment (``AWS_ENDPOINT_URL``, ``AWS_REGION``,
    ``AWS_ACCESS_KEY_ID``, ... or the machine's role), which delta-rs and Arrow both read.

    Attributes:
        bucket: the bucket.
        key: the key, or the prefix without a slash at its end; empty: the whole bucket.
    """

    bucket: str
    key: str

    def __str__(self) -> str:
        """The URI, with the scheme that Hadoop's client takes, too."""
        return f"s3a://{self._place}"

    def __truediv__(self, name: str | PurePath) -> "ObjectPath":
        """What is below."""
        return ObjectPath(self.bucket, f"{self.key}/{name}" if self.key else str(name))

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    def absolute(self) -> "ObjectPath":
        """Itself: a key is never relative."""
        return self

    def exists(self) -> bool:
        """Whether there is an object with this key, or one below it."""
        from pyarrow.fs import FileType

        return bool(_file_system().get_file_info(self._place).type != FileType.NotFound)

    def is_dir(self) -> bool:
        """Whether there is an object below it."""
        from pyarrow.fs import FileType

        return bool(_file_system().get_file_info(self._place).type == FileType.Directory)

    def iterdir(self) -> Iterator["ObjectPath"]:
        """What is directly below it."""
        from pyarrow.fs import FileSelector

        for info in _file_system().get_file_info(FileSelector(self._place, allow_not_found=True)):
            yield self / info.base_name

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: an object needs no folder."""

    def read_text(self, encoding: str) -> str:
        """The object's content.

        Raises:
            FileNotFoundError: there is none.
            OSError: the store does not answer, or refuses.
        """
        return self.read_bytes().decode(encoding)

    def read_bytes(self) -> bytes:
        """The object's content; see :meth:`read_text`."""
        with _file_system().open_input_stream(self._place) as stream:
            return bytes(stream.read())

    def write_text(self, content: str, encoding: str) -> None:
        """Write the object, whole.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        self.write_bytes(content.encode(encoding))

    def write_bytes(self, content: bytes) -> None:
        """Write the object, whole; see :meth:`write_text`."""
        with self.open_output() as stream:
            stream.write(content)

    def open_output(self) -> "NativeFile":
        """A stream that makes the object when it is closed."""
        return _file_system().open_output_stream(self._place)

    def open_input(self) -> "NativeFile":
        """The object, to be read at any place."""
        return _file_system().open_input_file(self._place)

    @property
    def _place(self) -> str:
        return f"{self.bucket}/{self.key}" if self.key else self.bucket


StoragePath: TypeAlias = Path | ObjectPath
"""A folder or a file: on a disk, or in an object store."""


def storage_path(place: str) -> StoragePath:
    """The place that a person names: a path, ``file:/path``, ``file:///path``, or ``s3a://bucket/prefix``.

    Raises:
        ConfigurationError: the scheme is another one, or the bucket is missing.
    """
    if _FILE_URI.match(place):
        return Path(place.removeprefix("file:").removeprefix("//"))
    scheme, separator, rest = place.partition("://")
    if not separator:
        return Path(place)
    bucket, _, key = rest.partition("/")
    if scheme not in _SCHEMES or not bucket:
        raise ConfigurationError(f"{place!r:.200} is no place for tables: give a path, or s3a://BUCKET/PREFIX")
    return ObjectPath(bucket, key.strip("/"))


def _file_system() -> "FileSystem":
    return _opened(
        os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
    )


@functools.cache
def _opened(endpoint: str | None, region: str | None) -> "FileSystem":
    """One for each process: it holds connections. Arrow finds credentials as other clients do, and only these."""
    from pyarrow.fs import S3FileSystem

    return S3FileSystem(endpoint_override=endpoint, region=region)
