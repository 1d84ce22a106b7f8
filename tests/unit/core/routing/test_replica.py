"""The rules of a table replica, one by one."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.hashing import slot_of
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.routing.rows import (
    MARKER_KEY,
    SETTINGS_KEY,
    EpochMarker,
    TableRow,
    UnreadableRow,
    bundle_key,
    namespace_key,
    slot_key,
)
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import InvariantViolationError, LogContinuityError, NoRouteError, UnroutableError
from tests.helpers.table_topics import TableTopic, TopicRecord

MARKER = MARKER_KEY.encode()
SETTINGS = TableSettings(8, 2, HashFunction.CRC32C, 2_500)


def slot(slot_id: int, leader: str | None, leader_epoch: int = 1) -> Slot:
    """A slot without followers."""
    return Slot(slot_id, leader, (), Epoch(leader_epoch))


def fold_all(replica: TableReplica, records: list[TopicRecord]) -> list[RoutingTable]:
    """Fold records and collect the tables shown."""
    shown = (replica.fold(record.key, record.value, record.row) for record in records)
    return [table for table in shown if table is not None]


def small_topic() -> TableTopic:
    """Two epochs: eight slots of node a, then slot 3 moves to b."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS, **{slot_key(number): slot(number, "a") for number in range(8)}})
    topic.commit({slot_key(3): slot(3, "b", 2)})
    return topic


def test_an_empty_topic_is_empty_not_broken() -> None:
    """A cluster without a leader yet has no table: that is no reason to rebuild."""
    assert TableReplica().at_end() is ReplicaStanding.EMPTY


def test_rows_are_not_shown_before_their_marker() -> None:
    """A half-read epoch must not be routed by."""
    topic = small_topic()
    replica = TableReplica()
    assert [table.epoch for table in fold_all(replica, topic.records[:-1])] == [1]
    assert replica.table is not None
    assert replica.table.slots[3].leader == "a"


def test_rows_behind_the_last_marker_are_foreign_and_change_nothing() -> None:
    """A leader writes rows and marker in one transaction, so rows without a marker are not its own."""
    topic = small_topic()
    topic.append(slot_key(5), slot(5, "intruder"))
    replica = TableReplica()
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]
    assert replica.at_end() is ReplicaStanding.WHOLE
    assert replica.table is not None
    assert replica.table.slots[5].leader == "a"


def test_rows_whose_marker_was_written_over_are_not_taken_for_foreign() -> None:
    """Compaction may have removed the marker of a newer epoch: to call the older one the newest would be wrong."""
    topic = small_topic()
    replica = TableReplica()
    fold_all(replica, topic.records[:-2])
    replica.fold(topic.records[-2].key, topic.records[-2].value, topic.records[-2].row)
    replica.fold(MARKER, b"nonsense", UnreadableRow("nonsense"))
    assert replica.at_end() is ReplicaStanding.MUST_REBUILD


def test_an_epoch_shares_what_did_not_change() -> None:
    """A table of a large cluster must not be copied for one changed slot."""
    topic = small_topic()
    topic.commit({namespace_key("kv"): Namespace("kv", 4)})
    first, second, third = fold_all(TableReplica(), topic.records)
    assert first.nodes is second.nodes
    assert first.slots[0] is second.slots[0]
    assert second.slots is third.slots
    assert first.slots[3].leader == "a", "a table that was shown never changes"


def test_a_removed_row_is_gone() -> None:
    """A tombstone takes the row out of the table and out of the digest."""
    topic = small_topic()
    topic.commit({namespace_key("kv"): Namespace("kv", 4)})
    topic.commit({namespace_key("kv"): None})
    replica = TableReplica()
    tables = fold_all(replica, topic.records)
    assert tables[2].namespaces == {"kv": Namespace("kv", 4)}
    assert tables[3].namespaces == {}
    assert namespace_key("kv") not in replica.row_hashes


def test_a_row_of_somebody_else_makes_the_reader_rebuild() -> None:
    """A table with a row that no marker counted must not be shown."""
    topic = small_topic()
    topic.append(slot_key(5), slot(5, "intruder"))
    topic.append(topic.records[-2].key.decode(), replace(topic.marker(1), epoch=Epoch(3), seq=Seq(3)))
    replica = TableReplica()
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]
    assert replica.at_end() is ReplicaStanding.MUST_REBUILD


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"term": Term(4)}, "term fell"),
        ({"epoch": Epoch(1)}, "epoch fell"),
        ({"seq": Seq(0)}, "seq fell"),
        ({"epoch": Epoch(2), "digest": "0" * 16}, "two digests"),
    ],
)
def test_a_marker_that_no_leader_can_have_written_stops_the_reader(change: dict[str, Any], word: str) -> None:
    """Kafka fences former leaders, so a falling term, epoch or seq or another log is not a late message but damage."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS}, term=5)
    topic.commit({slot_key(1): slot(1, "a")}, term=5)
    marker = replace(topic.marker(5), epoch=Epoch(3), seq=Seq(3))
    topic.append(topic.records[-1].key.decode(), replace(marker, **change))
    replica = TableReplica()
    with pytest.raises(LogContinuityError, match=word):
        fold_all(replica, topic.records)


def test_a_marker_repeated_by_a_later_leader_is_harmless() -> None:
    """A new leader may write the same epoch again to mend the topic; the table is the same and is shown once."""
    topic = small_topic()
    topic.append(topic.records[-1].key.decode(), replace(topic.marker(2), seq=Seq(9)))
    replica = TableReplica()
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]
    assert replica.at_end() is ReplicaStanding.WHOLE


def test_a_rebuilding_reader_does_not_go_back() -> None:
    """While it reads from the start again, a reader shows nothing older than what it had shown."""
    topic = small_topic()
    known = fold_all(TableReplica(), topic.records)[-1]
    topic.commit({slot_key(4): slot(4, "b", 3)})
    assert [table.epoch for table in fold_all(TableReplica(known), topic.records)] == [2, 3]


@pytest.mark.parametrize("kept", [0, 10])
def test_an_end_before_the_known_table_is_an_error(kept: int) -> None:
    """Routing by a topic that is shorter than before would take moves back; the error names causes and a page."""
    topic = small_topic()
    replica = TableReplica(fold_all(TableReplica(), topic.records)[-1])
    fold_all(replica, topic.records[:kept])
    with pytest.raises(LogContinuityError, match=r"restored from an older copy.*recreated or truncated.*has the steps"):
        replica.at_end()


def test_a_rebuilding_reader_refuses_another_log() -> None:
    """The topic of a recreated cluster has its own log id, and the old reader must not follow it in silence."""
    old = small_topic()
    new = TableTopic(log_id="log-2")
    new.commit({SETTINGS_KEY: SETTINGS})
    replica = TableReplica(fold_all(TableReplica(), old.records)[-1])
    assert fold_all(replica, new.records) == []
    with pytest.raises(LogContinuityError, match=r"log log-2.*follows log-1"):
        replica.at_end()


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (b"main/slot/4", slot(3, "a")),
        (b"main/slot/04", UnreadableRow("a key that no slot has")),
        (b"main/slot/" + b"9" * 5_000, UnreadableRow("more digits than Python reads")),
        (b"main/slot/\xd9\xa3", None),
        (b"\xff", None),
        (b"", None),
        (b"main", UnreadableRow("garbage")),
        (b"main/epoch/marker", None),
        (b"main/epoch/marker", UnreadableRow("garbage")),
        (b"main/slot/1", EpochMarker(Term(1), Epoch(9), Seq(9), "log-1", 9, "", "0" * 16)),
        (b"main/ring/1", UnreadableRow("a kind of a newer version")),
        (b"other/slot/3", slot(3, "a")),
    ],
)
def test_foreign_records_are_passed_by(key: bytes, row: TableRow | EpochMarker | UnreadableRow | None) -> None:
    """Whatever stands under whatever key, the last table stays, and the repair shows the next one."""
    topic = small_topic()
    replica = TableReplica()
    fold_all(replica, topic.records)
    before = replica.table
    assert replica.fold(key, None if row is None else b"foreign", row) is None
    assert replica.at_end() is ReplicaStanding.WHOLE
    assert replica.table is before
    if key != MARKER:
        replica.fold(key, None, None)
    topic.commit(topic.rows)
    assert [table.epoch for table in fold_all(replica, topic.records[-10:])] == [3]
    assert replica.at_end() is ReplicaStanding.WHOLE
    assert replica.table is not None
    assert replica.table.slots[3].leader == "b"


def test_a_marker_of_another_log_behind_ours_is_passed_by() -> None:
    """Also where it counts the rows right: the log that is followed is the one whose table was read first."""
    topic = small_topic()
    replica = TableReplica()
    fold_all(replica, topic.records)
    foreign = replace(topic.marker(9), log_id="another", epoch=Epoch(99))
    assert replica.fold(MARKER, b"foreign", foreign) is None
    assert replica.at_end() is ReplicaStanding.WHOLE
    topic.commit({slot_key(3): slot(3, "a", 3)})
    assert [table.epoch for table in fold_all(replica, topic.records[-2:])] == [3]


def test_a_reader_that_begins_finds_its_log_behind_a_foreign_marker() -> None:
    """Compaction may leave a foreign marker as the first one: only a marker that confirms rows names the log."""
    topic = small_topic()
    replica = TableReplica()
    replica.fold(MARKER, b"foreign", replace(topic.marker(9), log_id="another", epoch=Epoch(99), row_count=7))
    assert replica.log_id == ""
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]
    assert replica.log_id == "log-1"


@pytest.mark.parametrize("change", [{"seq": Seq(8)}, {"digest": "f" * 16}], ids=["an older one", "another digest"])
def test_foreign_markers_that_contradict_each_other_end_no_reader_that_begins(change: dict[str, Any]) -> None:
    """Before its log is known it cannot know which of them is the cluster's own."""
    topic = small_topic()
    replica = TableReplica()
    foreign = replace(topic.marker(9), log_id="another", row_count=7, seq=Seq(9))
    replica.fold(MARKER, b"foreign", foreign)
    replica.fold(MARKER, b"another", replace(foreign, **change))
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]


def test_a_marker_that_counts_no_rows_names_no_log() -> None:
    """It would fit an empty topic, whatever log it names, and the cluster's own markers would be foreign to it."""
    topic = small_topic()
    replica = TableReplica()
    empty = EpochMarker(Term(0), Epoch(0), Seq(0), "another", 0, "", "0" * 16)
    assert replica.fold(MARKER, b"foreign", empty) is None
    assert [table.epoch for table in fold_all(replica, topic.records)] == [1, 2]


def test_a_marker_of_another_log_is_no_recreation_while_its_rows_are_not_there() -> None:
    """A reader that begins anew, and finds its own marker written over, waits for the leader to repair the topic."""
    topic = small_topic()
    replica = TableReplica(fold_all(TableReplica(), topic.records)[-1])
    for record in topic.records[:5]:
        replica.fold(record.key, record.value, record.row)
    replica.fold(MARKER, b"foreign", replace(topic.marker(9), log_id="another"))
    assert replica.at_end() is ReplicaStanding.UNCONFIRMED


def test_an_unknown_kind_counts_in_the_digest_and_is_passed_by() -> None:
    """A newer leader may add kinds of rows: a reader that left them out of the digest would show no table again."""
    topic = small_topic()
    topic.commit({"main/ring/1": slot(1, "a")})
    replica = TableReplica()
    records = [
        replace(record, row=UnreadableRow("unknown")) if record.key == b"main/ring/1" else record
        for record in topic.records
    ]
    tables = fold_all(replica, records)
    assert [table.epoch for table in tables] == [1, 2, 3]
    assert tables[-1].unreadable == {}
    assert tables[-1].slots == tables[1].slots


def test_a_row_of_a_newer_version_makes_its_key_unroutable_and_no_other() -> None:
    """What it says cannot be guessed; what the other rows say is still true."""
    topic = small_topic()
    bundles = equal_bundles("kv", 2)
    bundle_rows: dict[str, TableRow | None] = {bundle_key(each.bundle_id): each for each in bundles}
    topic.commit({namespace_key("kv"): Namespace("kv", 2), **bundle_rows})
    newer = {slot_key(3).encode(), bundle_key(bundles[0].bundle_id).encode()}
    replica = TableReplica()
    records = [
        replace(record, row=UnreadableRow("schema of a newer version")) if record.key in newer else record
        for record in topic.records
    ]
    table = fold_all(replica, records)[-1]
    assert replica.at_end() is ReplicaStanding.WHOLE
    assert table.unreadable.keys() == {key.decode() for key in newer}
    lost = next(key for key in map(str, range(1_000)) if slot_of(key, 8, HashFunction.CRC32C) == 3)
    kept = next(key for key in map(str, range(1_000)) if slot_of(key, 8, HashFunction.CRC32C) == 4)
    with pytest.raises(UnroutableError, match=r"'main/slot/3' of epoch 3 was written by a newer version: upgrade"):
        table.slot_for(lost)
    assert table.slot_for(kept).leader == "a"
    below = next(key for key in map(str, range(1_000)) if bundle_hash(key) < bundles[0].upper)
    above = next(key for key in map(str, range(1_000)) if bundle_hash(key) >= bundles[1].lower)
    with pytest.raises(UnroutableError, match="newer version"):
        table.bundle_for("kv", below)
    assert table.bundle_for("kv", above) == bundles[1]


def test_unreadable_bundle_of_a_tenants_namespace_leaves_a_namespace_of_the_tenants_name_alone() -> None:
    """The key of the first begins with that of the second."""
    topic = small_topic()
    other = equal_bundles("kv/eu", 1)[0]
    rows: dict[str, TableRow | None] = {
        namespace_key("kv/eu"): Namespace("kv/eu", 1),
        bundle_key(other.bundle_id): other,
    }
    topic.commit(rows)
    records = [
        replace(record, row=UnreadableRow("schema of a newer version"))
        if record.key == bundle_key(other.bundle_id).encode()
        else record
        for record in topic.records
    ]
    table = fold_all(TableReplica(), records)[-1]
    with pytest.raises(UnroutableError, match="newer version"):
        table.bundle_for("kv/eu", "key")
    with pytest.raises(NoRouteError, match="'kv'"):
        table.bundle_for("kv", "key")


def test_settings_of_a_newer_version_keep_the_last_table_and_confirm_nothing() -> None:
    """Without the settings no key has a slot; a node must not take its last table for the newest one."""
    topic = small_topic()
    replica = TableReplica()
    fold_all(replica, topic.records)
    topic.commit({SETTINGS_KEY: replace(SETTINGS, replica_count=3)})
    settings, marker = topic.records[-2:]
    replica.fold(settings.key, settings.value, UnreadableRow("schema of a newer version"))
    assert replica.fold(marker.key, marker.value, marker.row) is None
    assert replica.table is not None
    assert replica.table.epoch == 2
    assert replica.at_end() is ReplicaStanding.UNCONFIRMED


def test_a_marker_confirms_no_rows_without_settings() -> None:
    """No leader commits that: the marker is somebody else's, and names no log either."""
    topic = TableTopic()
    topic.commit({slot_key(1): slot(1, "a")})
    replica = TableReplica()
    assert not fold_all(replica, topic.records)
    assert not replica.log_id
    assert replica.at_end() is ReplicaStanding.MUST_REBUILD


def test_a_table_that_fits_and_is_none_is_a_defect() -> None:
    """With a slot beyond the count the rows contradict each other: that is the leader's defect."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS, slot_key(8): slot(8, "a")})
    with pytest.raises(InvariantViolationError, match="slot 8"):
        fold_all(TableReplica(), topic.records)


def test_keys_are_routed_by_the_settings() -> None:
    """The table's own helpers use the hash functions of the wire contract, for text and bytes alike."""
    topic = small_topic()
    bundles = equal_bundles("kv", 4)
    topic.commit({namespace_key("kv"): Namespace("kv", 4), **{bundle_key(each.bundle_id): each for each in bundles}})
    table = fold_all(TableReplica(), topic.records)[-1]
    for key in ("", "a", "user-17", "ключ"):
        assert table.slot_for(key).slot_id == slot_of(key, 8, HashFunction.CRC32C)
        assert table.slot_for(key.encode()) is table.slot_for(key)
        bundle = table.bundle_for("kv", key)
        assert bundle.lower <= bundle_hash(key) < bundle.end
    with pytest.raises(NoRouteError, match="'none'"):
        table.bundle_for("none", "key")
