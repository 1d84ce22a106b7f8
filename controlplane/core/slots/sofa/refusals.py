"""The exceptions that SOFARegistry's classes throw; the tick then changes nothing."""

from controlplane.errors import PlacementRefusedError


class InvalidSlotTableError(PlacementRefusedError):
    """A table that must not be published: a slot has no leader, or its leader also follows it."""


class TooManyFollowersError(PlacementRefusedError):
    """A slot has more followers than the number of replicas allows, because that number was lowered."""


class NothingToArrangeError(PlacementRefusedError):
    """There are no nodes, or no slot lacks anything."""


class UnassignedSlotError(PlacementRefusedError):
    """A table cannot be built while one of its slots has no leader."""
