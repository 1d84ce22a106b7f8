"""The command as a release of feature level 1 has it: ``python -m tests.helpers.older_build ...``.

It knows neither the newer level nor the schemas that came with it, and is otherwise the same code.
"""

import sys
from collections.abc import Iterable

from controlplane.codec import schema_store
from controlplane.codec.schema_store import Schema, SchemaStore, SchemaVersion
from controlplane.core.cluster import policy

NEWER_SCHEMAS = {SchemaVersion("Decision", 2)}


class OlderStore(SchemaStore):
    """The schemas of that release."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        """Leave out the fields that were added later."""
        super().__init__(schema for schema in schemas if schema.id not in NEWER_SCHEMAS)


def main() -> int:
    """Run one command line; everything else is imported only now, with the level of that release."""
    policy.FEATURE_LEVEL = 1
    schema_store.SchemaStore = OlderStore  # type: ignore[misc]
    from controlplane.cli.root import run  # noqa: PLC0415

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
