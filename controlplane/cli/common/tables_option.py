"""The option that names where the Delta tables are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from controlplane.errors import ConfigurationError
from streaming.storage import StoragePath, storage_path

_Command = TypeVar("_Command", bound=Callable[..., Any])


class StoragePathType(click.ParamType[StoragePath]):
    """A path, or ``s3a://BUCKET/PREFIX``."""

    name = "place"

    def convert(
        self, value: "str | StoragePath", param: click.Parameter | None, ctx: click.Context | None
    ) -> StoragePath:
        """See :meth:`click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        try:
            place = storage_path(value)
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)
        if isinstance(place, Path) and place.is_file():
            self.fail(f"{value!r} is a file, not a folder", param, ctx)
        return place


def tables_dir_option(text: str) -> Callable[[_Command], _Command]:
    """``--tables-dir``, a folder or a prefix in an object store.

    Args:
        text: what it is for, and its default.
    """
    return click.option("--tables-dir", type=StoragePathType(), metavar="FOLDER_OR_URI", help=text)


checkpoints_dir_option = click.option(
    "--checkpoints-dir",
    type=StoragePathType(),
    metavar="FOLDER_OR_URI",
    help="Where the checkpoints are, which the driver alone needs.  [default: _checkpoints beside the tables]",
)
"""``--checkpoints-dir``, as the pipeline and the commands that mend it take it."""
