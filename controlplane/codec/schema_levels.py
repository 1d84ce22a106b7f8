"""From which feature level on leaders write a version of a record that every reader of the log or the table reads.

A reader that is not upgraded stops at a decision of a level that it does not know, and has no route for a row in a
schema that it does not know. So a new version, or a new kind of row, comes in three steps: a release reads it; every
reader is upgraded; an operator raises the level, and from then on leaders write it. The schema's file alone changes no
byte that is written: its level is named here, or in the declaration of the kind of row.
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
        SchemaVersion("EpochMarker", 1): 1,
        **{
            SchemaVersion(kind.record.__name__, version): level
            for kind in ROW_KINDS
            for version, level in enumerate(kind.levels, start=1)
        },
    }
)
"""Every version of these records; the kinds of rows declare theirs.

:data:`controlplane.core.cluster.policy.FEATURE_LEVEL` says what the levels bring.
"""


@functools.cache
def version_at(name: str, feature_level: int) -> int:
    """The newest version of a record that may be written at a feature level.

    Raises:
        InvariantViolationError: the record is written from a later level on (a defect of the caller).
    """
    versions = [each.version for each, level in SCHEMA_LEVELS.items() if each.name == name and level <= feature_level]
    if not versions:
        message = f"no version of {name} may be written at feature level {feature_level}"
        raise InvariantViolationError(message)
    return max(versions)


@functools.cache
def oldest_version_for(name: str, needed_level: int) -> int:
    """The oldest version of a record that holds what a feature level brought.

    Raises:
        InvariantViolationError: there is none (a defect: the level needs a new version of the schema).
    """
    versions = [each.version for each, level in SCHEMA_LEVELS.items() if each.name == name and level >= needed_level]
    if not versions:
        message = f"no version of {name} holds what feature level {needed_level} brought"
        raise InvariantViolationError(message)
    return min(versions)
