"""Records of ownership, the rule for two of them, and the table (the rule's vectors are in the golden tests)."""

import pytest

from controlplane.core.bundles.ownership_channel.conflict import Verdict, judge
from controlplane.core.bundles.ownership_channel.record import (
    GREATEST_VERSION,
    LEAST_VERSION,
    OwnershipRecord,
    is_blank,
    next_version,
    state_of,
)
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_channel.table import OwnershipTable, Written, compacted
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.errors import InvalidInputError

FREE, OWNED, ASSIGNING, RELEASING, SPLITTING = (
    OwnershipState.FREE,
    OwnershipState.OWNED,
    OwnershipState.ASSIGNING,
    OwnershipState.RELEASING,
    OwnershipState.SPLITTING,
)
TOPIC, STORE = Storage.SYSTEM_TOPIC, Storage.METADATA_STORE
ASSIGNED = Written("t/n/1", OwnershipRecord(ASSIGNING, "a"))
OWNED_BY_A = Written("t/n/1", OwnershipRecord(OWNED, "a", None, 2))
DELETION = Written("t/n/1", None)


def test_versions_go_round() -> None:
    """A bundle that changed hands 2^63 times is no special case."""
    assert next_version(None) == 1
    assert next_version(OwnershipRecord(OWNED, "a", None, 41)) == 42
    assert next_version(OwnershipRecord(OWNED, "a", None, GREATEST_VERSION)) == LEAST_VERSION
    greatest, least = (OwnershipRecord(FREE, version=version) for version in (GREATEST_VERSION, LEAST_VERSION))
    following = OwnershipRecord(ASSIGNING, "a", None, LEAST_VERSION)
    assert judge(greatest, following, STORE) is Verdict.VALID
    assert judge(least, OwnershipRecord(ASSIGNING, "a", None, GREATEST_VERSION), STORE) is Verdict.VERSION_GAP


@pytest.mark.parametrize("state", [state for state in OwnershipState if state is not FREE])
def test_a_record_names_a_node(state: OwnershipState) -> None:
    """Only a free bundle needs no node; a blank name is none."""
    with pytest.raises(InvalidInputError, match="ownership_without_node"):
        OwnershipRecord(state, " ", None)
    assert OwnershipRecord(state, " ", "a").source == "a"
    assert OwnershipRecord(FREE).destination is None


@pytest.mark.parametrize("version", [GREATEST_VERSION + 1, LEAST_VERSION - 1])
def test_a_version_has_64_bits(version: int) -> None:
    """Other readers could not hold a greater one."""
    with pytest.raises(InvalidInputError, match="ownership_version"):
        OwnershipRecord(FREE, version=version)


def test_blank_means_what_it_means_in_java() -> None:
    """A space that must not break a line is white space in Python alone."""
    assert is_blank(None)
    assert is_blank("")
    assert is_blank(" \t\u2003")
    assert not is_blank("\xa0")
    assert not is_blank("\x85")
    assert not is_blank("a ")


@pytest.mark.parametrize(
    ("present", "read", "on_topic", "in_store"),
    [
        (None, None, Verdict.DELETION, Verdict.DELETION),
        (OWNED_BY_A.record, None, Verdict.DELETION, Verdict.DELETION),
        (None, OwnershipRecord(ASSIGNING, "a"), Verdict.VALID, Verdict.FIRST),
        # The store takes any first record of version 1, as a deletion has shown that there is none before it.
        (None, OwnershipRecord(OWNED, "a"), Verdict.VALID, Verdict.FIRST),
        (None, OwnershipRecord(OWNED, "a", None, 7), Verdict.VALID, Verdict.NOT_FIRST_VERSION),
        (None, OwnershipRecord(OWNED, "a", None, 7, is_forced=True), Verdict.FORCED, Verdict.NOT_FIRST_VERSION),
        (None, OwnershipRecord(OwnershipState.INIT, "a"), Verdict.STATE, Verdict.FIRST),
        (OwnershipRecord(OWNED, "a"), OwnershipRecord(FREE, None, "b", 9), Verdict.GAP, Verdict.VERSION_GAP),
        (OwnershipRecord(OWNED, "a"), OwnershipRecord(FREE, None, "b", 2, 0, True), Verdict.FORCED, Verdict.FORCED),
        (OwnershipRecord(OWNED, "a"), OwnershipRecord(FREE, None, "b", 1, 0, True), *[Verdict.OLD_VERSION] * 2),
    ],
)
def test_verdicts_say_why(
    present: OwnershipRecord | None, read: OwnershipRecord | None, on_topic: Verdict, in_store: Verdict
) -> None:
    """An operator who asks why a record did not count gets the first thing that was wrong with it."""
    assert judge(present, read, TOPIC) is on_topic
    assert judge(present, read, STORE) is in_store


def test_an_owned_bundle_without_owner_is_refused_by_name() -> None:
    """Pulsar fails there with an exception that its reader logs; either way the table stays as it is."""
    nobody = OwnershipRecord(OWNED, None, "a")
    for read in (OwnershipRecord(SPLITTING, None, "a", 2), OwnershipRecord(RELEASING, "b", "a", 2)):
        assert judge(nobody, read, TOPIC) is Verdict.NO_OWNER
    assert Verdict.NO_OWNER.keeps
    # What is wrong anyway is said first.
    assert judge(nobody, OwnershipRecord(RELEASING, "b", None, 2), TOPIC) is Verdict.NODES
    assert judge(nobody, OwnershipRecord(SPLITTING, "b", "a", 2), TOPIC) is Verdict.NODES


def test_a_table_takes_the_first_valid_record() -> None:
    """Two nodes that assign the same bundle at once get the same answer everywhere."""
    other = Written("t/n/1", OwnershipRecord(ASSIGNING, "b"))
    table, judged = OwnershipTable().read([ASSIGNED, other, OWNED_BY_A])
    assert table.records == {"t/n/1": OWNED_BY_A.record}
    assert [each.verdict for each in judged] == [Verdict.VALID, Verdict.OLD_VERSION, Verdict.VALID]
    assert table.owners() == {"t/n/1": "a"}
    table, judged = table.read([DELETION])
    assert (table.records, judged[0].verdict) == ({}, Verdict.DELETION)
    assert state_of(table.records.get("t/n/1")) is OwnershipState.INIT


def test_compaction_leaves_the_last_record_that_was_taken() -> None:
    """Ordinary compaction would keep the last one written, whether or not a reader had taken it."""
    late = Written("t/n/1", OwnershipRecord(ASSIGNING, "b"))
    second = Written("t/n/2", OwnershipRecord(ASSIGNING, "b"))
    assert compacted([ASSIGNED, second, OWNED_BY_A, late]) == (second, OWNED_BY_A)
    assert compacted([ASSIGNED, DELETION, second]) == (second,)
    assert compacted([ASSIGNED, DELETION, late]) == (late,)


@pytest.mark.parametrize("former", [OwnershipState.FREE, OwnershipState.DELETED])
def test_a_record_in_state_init_is_never_taken(former: OwnershipState) -> None:
    """Also after the states that *Init* may follow, and when it is forced: compaction would lose it."""
    log = [
        Written("b", OwnershipRecord(former, None, "n1", 1)),
        Written("b", OwnershipRecord(OwnershipState.INIT, None, "n1", 2, is_forced=True)),
    ]
    table, judged = OwnershipTable().read(log)
    assert judged[1].verdict is Verdict.INIT
    assert table.records["b"].state is former
    assert OwnershipTable().read(compacted(log))[0].records == table.records


def test_a_reader_that_missed_the_turn_of_the_versions_keeps_its_record() -> None:
    """As compaction says: the least version follows the greatest, and a reader with an older record sees it fall."""
    turn = (GREATEST_VERSION - 1, GREATEST_VERSION, LEAST_VERSION)
    states = (OwnershipState.ASSIGNING, OwnershipState.OWNED, OwnershipState.SPLITTING)
    nodes = (("n1", None), ("n1", None), (None, "n1"))
    log = [
        Written("b", OwnershipRecord(state, *pair, version))
        for state, pair, version in zip(states, nodes, turn, strict=True)
    ]
    table, _ = OwnershipTable().read(log)
    assert table.records["b"].version == LEAST_VERSION
    assert OwnershipTable().read(compacted(log))[0].records == table.records
    behind, _ = OwnershipTable().read(log[:1])
    assert behind.read(compacted(log))[0].records == behind.records


def test_a_reader_that_missed_a_deletion_keeps_its_record() -> None:
    """Versions begin anew after a deletion, so the compacted topic cannot correct a reader that missed it."""
    table, _ = OwnershipTable().read([ASSIGNED, OWNED_BY_A])
    rest = compacted([ASSIGNED, OWNED_BY_A, DELETION, Written("t/n/1", OwnershipRecord(ASSIGNING, "b"))])
    assert table.read(rest)[0] == table
