"""Bundles that are handed from one node to another, and that are split: who serves in which state."""

from dataclasses import replace
from typing import Final

from controlplane.codec.table import encode_row
from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.routing.rows import TableRow, bundle_key, namespace_key
from controlplane.core.values.identifiers import Epoch
from tests.vectors.script_rows import (
    HIGH,
    HIGH_KEY,
    LOW,
    LOW_KEY,
    WHOLE,
    fails,
    finds_bundle,
    first_table,
)
from tests.vectors.script_topic import Script

_MIDDLE: Final = 1 << 31
_OWNED: Final = Bundle(
    "kv", 0, _MIDDLE, "n1", OwnershipState.OWNED, owner_epoch=Epoch(1), state_epoch=Epoch(1), version=1
)
_OTHER: Final = replace(_OWNED, lower=_MIDDLE, upper=LAST_HASH)
_KV: Final = {namespace_key("kv"): Namespace("kv", 2)}


def handoffs() -> list[Script]:
    """All scripts of this module."""
    return [_handed_over(), _taken_and_freed(), _split(), _earlier_levels(), _unknown_state()]


def _row(bundle: Bundle) -> dict[str, TableRow | bytes | None]:
    return {bundle_key(bundle.bundle_id): bundle}


def _handed_over() -> Script:
    script = Script(
        "a bundle that is handed off",
        "B5 B6 B7",
        "Owned, Releasing, Assigning, Owned: between the owners no node serves it, and the next one is named.",
    )
    script.commit(first_table() | _KV | _row(_OWNED) | _row(_OTHER))
    script.read(WHOLE, [1], in_use=1, lookups=[finds_bundle(LOW_KEY, LOW, "n1")])
    releasing = replace(
        _OWNED, state=OwnershipState.RELEASING, next_owner="n2", state_epoch=Epoch(2), version=_OWNED.version + 1
    )
    script.commit(_row(releasing))
    other = finds_bundle(HIGH_KEY, HIGH, "n1")
    found = [finds_bundle(LOW_KEY, LOW, "n1", is_served=False, next_owner="n2"), other]
    script.read(WHOLE, [2], in_use=2, lookups=found)
    assigning = replace(
        releasing,
        state=OwnershipState.ASSIGNING,
        owner=None,
        former_owner="n1",
        state_epoch=Epoch(3),
        version=releasing.version + 1,
    )
    script.commit(_row(assigning))
    script.read(WHOLE, [3], in_use=3, lookups=[finds_bundle(LOW_KEY, LOW, None, next_owner="n2"), other])
    script.commit(
        _row(
            replace(
                assigning,
                state=OwnershipState.OWNED,
                owner="n2",
                next_owner=None,
                owner_epoch=Epoch(4),
                state_epoch=Epoch(4),
                version=assigning.version + 1,
            )
        )
    )
    return script.read(WHOLE, [4], in_use=4, lookups=[finds_bundle(LOW_KEY, LOW, "n2"), other])


def _taken_and_freed() -> Script:
    script = Script(
        "a bundle that is released for nobody, and one that is taken by force",
        "B5 B6 B7",
        "Nobody serves the first one, and it goes nowhere yet. The owner of the second one may serve it at once.",
    )
    releasing = replace(_OWNED, state=OwnershipState.RELEASING, version=2)
    forced = replace(_OTHER, owner="n2", former_owner="n1", is_forced=True, version=-(1 << 63))
    script.commit(first_table() | _KV | _row(releasing) | _row(forced))
    found = [finds_bundle(LOW_KEY, LOW, "n1", is_served=False), finds_bundle(HIGH_KEY, HIGH, "n2")]
    script.read(WHOLE, [1], in_use=1, lookups=found)
    script.commit(_row(replace(_OWNED, state=OwnershipState.FREE, owner=None, former_owner="n1", version=3)))
    return script.read(WHOLE, [2], in_use=2, lookups=[finds_bundle(LOW_KEY, LOW, None)])


def _split() -> Script:
    script = Script(
        "a bundle that is split",
        "B3 B6",
        "Its owner serves it while it is split. Then its row is gone, and those of its parts have the same owner.",
    )
    quarters = tuple(
        replace(_OWNED, lower=lower, upper=lower + _MIDDLE // 2, version=1, parent=_OWNED.hash_range.name)
        for lower in (0, _MIDDLE // 2)
    )
    splitting = replace(
        _OWNED, state=OwnershipState.SPLITTING, version=2, children=tuple(each.hash_range.name for each in quarters)
    )
    script.commit(first_table() | _KV | _row(splitting) | _row(_OTHER))
    script.read(WHOLE, [1], in_use=1, lookups=[finds_bundle(LOW_KEY, LOW, "n1")])
    script.commit(_row(quarters[0]) | _row(quarters[1]) | {bundle_key(LOW): None})
    return script.read(WHOLE, [2], in_use=2, lookups=[finds_bundle(LOW_KEY, quarters[0].bundle_id, "n1")])


def _earlier_levels() -> Script:
    script = Script(
        "rows of bundles without a state",
        "B5 B6 F2",
        "Below feature level 3 rows have no state, in either version of their schema: an owner serves.",
    )
    owned, free = Bundle("kv", 0, _MIDDLE, "n1"), Bundle("kv", _MIDDLE, LAST_HASH, None)
    found = [finds_bundle(LOW_KEY, LOW, "n1"), finds_bundle(HIGH_KEY, HIGH, None)]
    script.commit(
        first_table()
        | {
            namespace_key("kv"): encode_row(Namespace("kv", 2), 1),
            bundle_key(LOW): encode_row(owned, 1),
            bundle_key(HIGH): encode_row(free, 1),
        }
    )
    script.read(WHOLE, [1], in_use=1, lookups=found)
    script.commit(_KV | _row(owned) | _row(free))
    return script.read(WHOLE, [2], in_use=2, lookups=found)


def _unknown_state() -> Script:
    script = Script(
        "a bundle in a state that the reader does not know",
        "B6 F7 R8",
        "Whether its owner serves it follows from the state, so its range cannot be routed.",
    )
    lent = encode_row(_OWNED).replace(b"Owned", b"Lent!")
    script.commit(first_table() | _KV | {bundle_key(LOW): lent} | _row(_OTHER))
    found = [fails(LOW_KEY, namespace="kv"), finds_bundle(HIGH_KEY, HIGH, "n1")]
    return script.read(WHOLE, [1], in_use=1, lookups=found)
