"""The feature levels from which on leaders write the versions of the records that are in the log and in the table.

A reader that is not upgraded stops at a decision of a level that it does not know, and has no route for a row in a
schema that it does not know. So a new version, or a new kind of row, is introduced in three steps: a release reads it;
every reader is upgraded; an operator raises the level, and from then on leaders write it. Adding a schema's file does
not change what is written: its level is stated here, or in the declaration of the kind of row.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controlplane.codec.schema_store import SchemaVersion
from controlplane.core.routing.rows import ROW_KINDS
from controlplane.errors import InvariantViolationError

SCHEMA_LEVELS: Final[Mapping[SchemaVersion, int]] = MappingProxyType(
    {
        SchemaVersion("Decision", 1): 1,
        SchemaVersion("Decision", 2): 2,
        SchemaVersion("Decision", 3): 3,
        SchemaVersion("EpochMarker", 1): 1,
        **{
            SchemaVersion(kind.record.__name__, version): level
            for kind in ROW_KINDS
            for version, level in enumerate(kind.levels, start=1)
        },
    }
)
"""Every version of these records; the kinds of rows declare theirs.

:data:`controlplane.core.cluster.policy.FEATURE_LEVEL` describes the levels.
"""


@functools.cache
def version_at(name: str, feature_level: int) -> int:
    """The newest version of a record that may be written at a feature level.

    Raises:
        InvariantViolationError: the record is written only from a later level on (a defect of the caller).
    """
    versions = [each.version for each, level in SCHEMA_LEVELS.items() if each.name == name and level <= feature_level]
    if not versions:
        message = f"no version of {name} may be written at feature level {feature_level}"
        raise InvariantViolationError(message)
    return max(versions)


@functools.cache
def oldest_version_for(name: str, needed_level: int) -> int:
    """The oldest version of a record that can hold what a feature level introduced.

    Raises:
        InvariantViolationError: there is none (a defect: the level needs a new version of the schema).
    """
    versions = [each.version for each, level in SCHEMA_LEVELS.items() if each.name == name and level >= needed_level]
    if not versions:
        message = f"no version of {name} holds what feature level {needed_level} introduced"
        raise InvariantViolationError(message)
    return min(versions)
