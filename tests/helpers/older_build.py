"""The command as a release of feature level 1 has it: ``python -m tests.helpers.older_build ...``.

It knows neither the newer level nor the schemas that came with it, and is otherwise the same code.
"""

import sys
from collections.abc import Callable, Iterable

from controlplane.codec import schema_store
from controlplane.codec.framing import Datum
from controlplane.codec.schema_store import Schema, SchemaStore, SchemaVersion
from controlplane.core.cluster import policy
from controlplane.core.log.inputs import InputPayload

NEWER_SCHEMAS = {
    SchemaVersion("Decision", 3),
    *(SchemaVersion(name, 2) for name in ("NodeJoined", "NodeLeaving", "NodeLeft", "NodeRow")),
    SchemaVersion("Decision", 2),
    SchemaVersion("Heartbeat", 2),
    SchemaVersion("TableSettings", 2),
    SchemaVersion("Tick", 2),
}


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
    from controlplane.codec import inputs  # noqa: PLC0415

    newer_builder = inputs._builder  # noqa: SLF001

    def builder(kind: type[InputPayload]) -> Callable[[Datum], InputPayload]:
        # A named tuple of that release has no later fields: here they have their defaults.
        later, build = inputs._LATER_IN_TUPLES.get(kind, {}), newer_builder(kind)  # noqa: SLF001
        return lambda datum: build({**later, **datum})

    inputs._builder = builder  # noqa: SLF001
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
