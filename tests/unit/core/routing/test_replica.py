"""The rules of a table replica, one by one."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.hashing import bundle_hash, slot_of
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.routing.rows import SETTINGS_KEY, bundle_key, namespace_key, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import InvalidInputError, InvariantViolationError, LogContinuityError, NoRouteError
from tests.helpers.table_topics import TableTopic, TopicRecord

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
        ({"log_id": "another"}, "recreated"),
        ({"epoch": Epoch(2), "digest": "0" * 16}, "two digests"),
    ],
)
def test_a_marker_that_no_leader_can_have_written_stops_the_reader(change: dict[str, object], word: str) -> None:
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
    """A topic that is shorter than before was recreated or truncated: routing by it would take moves back."""
    topic = small_topic()
    replica = TableReplica(fold_all(TableReplica(), topic.records)[-1])
    fold_all(replica, topic.records[:kept])
    with pytest.raises(LogContinuityError, match="recreated or truncated"):
        replica.at_end()


def test_a_rebuilding_reader_refuses_another_log() -> None:
    """The topic of a recreated cluster has its own log id, and the old reader must not follow it in silence."""
    old = small_topic()
    new = TableTopic(log_id="log-2")
    new.commit({SETTINGS_KEY: SETTINGS})
    with pytest.raises(LogContinuityError, match="log-2"):
        fold_all(TableReplica(fold_all(TableReplica(), old.records)[-1]), new.records)


def test_keys_must_belong_to_their_rows() -> None:
    """A row under another row's key would be removed or replaced by the wrong record."""
    replica = TableReplica()
    with pytest.raises(InvalidInputError, match="wrong_key"):
        replica.fold(b"main/slot/4", b"x", slot(3, "a"))
    with pytest.raises(InvalidInputError, match="wrong_key"):
        replica.fold(b"main/slot/3", None, slot(3, "a"))
    with pytest.raises(InvalidInputError, match="wrong_key"):
        replica.fold(b"\xff", None, None)
    with pytest.raises(InvalidInputError, match="unknown_key"):
        replica.fold(b"main/epoch/marker", None, None)


def test_a_table_that_fits_and_is_none_is_a_defect() -> None:
    """Without settings, or with a slot beyond the count, nothing can be routed: that is the leader's defect."""
    topic = TableTopic()
    topic.commit({slot_key(1): slot(1, "a")})
    with pytest.raises(InvariantViolationError, match="no settings"):
        fold_all(TableReplica(), topic.records)
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
        assert bundle.lower <= bundle_hash(key) < bundle.upper
    with pytest.raises(NoRouteError, match="'none'"):
        table.bundle_for("none", "key")
