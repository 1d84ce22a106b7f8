"""Parts of the software that a small installation does not have."""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager

from controlplane.errors import MissingExtraError


@contextmanager
def needs_extra(extra: str, needed_for: str, packages: Collection[str]) -> Iterator[None]:
    """Name the extra to install if an import inside the block does not find one of its packages."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise MissingExtraError(extra, needed_for) from error


def needs_spark() -> AbstractContextManager[None]:
    """:func:`needs_extra` for pyspark with its bridge to Java, Delta and what goes with them."""
    return needs_extra("pipeline", "Spark", {"pyspark", "py4j", "deltalake", "pyarrow"})
