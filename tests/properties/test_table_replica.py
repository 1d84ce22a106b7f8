"""Whatever is committed and however the topic is compacted, a reader shows committed tables only, and ends whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.routing.rows import MARKER_KEY, SETTINGS_KEY, EpochMarker, TableRow, UnreadableRow, key_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Epoch, Seq, SlotId, Term
from tests.helpers.shown_rows import shown_rows
from tests.helpers.table_topics import TableTopic

SLOT_COUNT = 4
SETTINGS = TableSettings(SLOT_COUNT, 2, HashFunction.CRC32C, 2_500)
NODES = ["a", "b", "c"]

slots = st.builds(
    Slot,
    slot_id=st.integers(0, SLOT_COUNT - 1),
    leader=st.sampled_from([*NODES, None]),
    followers=st.just(()),
    leader_epoch=st.integers(0, 3).map(Epoch),
)
nodes = st.builds(
    NodeRow,
    node_id=st.sampled_from(NODES),
    incarnation=st.integers(1, 3),
    role=st.just(NodeRole.DATA),
    status=st.sampled_from([NodeStatus.ACTIVE, NodeStatus.FENCED]),
    addresses=st.just(()),
    zone=st.just(""),
    weight=st.just(1),
    version=st.just(""),
)
bundles = st.builds(
    Bundle, namespace=st.just("kv"), lower=st.just(0), upper=st.just(1 << 32), owner=st.sampled_from(NODES)
)
changes = st.lists(
    st.tuples(st.one_of(slots, nodes, bundles), st.booleans()).map(
        lambda drawn: (key_of(drawn[0]), None if drawn[1] and not isinstance(drawn[0], Slot) else drawn[0])
    ),
    min_size=1,
    max_size=4,
).map(dict)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), changes),
        st.tuples(st.just("read"), st.integers(1, 6)),
        st.tuples(st.just("compact"), st.floats(0, 1), st.booleans()),
    ),
    max_size=40,
)

foreign_markers = st.builds(
    EpochMarker,
    term=st.integers(0, 9).map(Term),
    epoch=st.integers(0, 9).map(Epoch),
    seq=st.integers(0, 9).map(Seq),
    log_id=st.sampled_from(["", "log-2", "log-3"]),
    row_count=st.integers(-1, 9),
    cause=st.just(""),
    digest=st.sampled_from(["", "0" * 16, "f" * 16]),
)
foreign_keys = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"main/slot/0", b"main/slot/9", b"main/slot/x", b"main/table/settings", b"main/node/a"]),
    st.sampled_from([b"main/epoch/marker", b"main/ring/1", b"main/bundle/kv/0x00000000_0x100000000", b"main/table/x"]),
)
far_slots = st.builds(
    Slot,
    slot_id=st.sampled_from([-1, -(1 << 62), SLOT_COUNT, 10**10, 1 << 62]).map(SlotId),
    leader=st.none(),
    followers=st.just(()),
    leader_epoch=st.just(Epoch(0)),
)
foreign_records = st.one_of(
    st.tuples(foreign_keys, st.none(), st.none()),
    st.tuples(foreign_keys, st.binary(max_size=4), st.just(UnreadableRow("garbage"))),
    st.one_of(slots, far_slots, nodes, bundles).map(lambda row: (key_of(row).encode(), canonical_bytes(row), row)),
    st.tuples(foreign_keys, st.binary(max_size=4), st.one_of(slots, nodes, foreign_markers)),
    foreign_markers.map(lambda marker: (MARKER_KEY.encode(), canonical_bytes(marker), marker)),
)
foreign_steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), changes),
        st.tuples(st.just("foreign"), foreign_records),
        st.tuples(st.just("read"), st.integers(1, 6)),
        st.tuples(st.just("end"), st.none()),
        st.tuples(st.just("repair"), st.none()),
        st.tuples(st.just("compact"), st.floats(0, 1)),
    ),
    max_size=40,
)


def rows_shown(table: RoutingTable) -> dict[str, TableRow]:
    """The table's rows by key; slots that never had a row are left out."""
    without = {Slot(slot.slot_id, None, (), Epoch(0)) for slot in table.slots}
    return {key_of(row): row for row in shown_rows(table) if row not in without}


def committed(topic: TableTopic, epoch: int) -> dict[str, TableRow]:
    """What the leader committed as that epoch, without slots that look as if they had no row."""
    return {
        key: row
        for key, row in topic.tables[epoch].items()
        if not (isinstance(row, Slot) and row == Slot(row.slot_id, None, (), Epoch(0)))
    }


class Reader:
    """Reads the topic piece by piece into a replica and rebuilds when it is told to."""

    def __init__(self, topic: TableTopic) -> None:
        self.topic = topic
        self.replica = TableReplica()
        self.offset = 0
        self.tables: list[RoutingTable] = []

    def read(self, count: int) -> None:
        """Fold at most ``count`` records and check every table that is shown."""
        for record in self.topic.read(self.offset, count):
            self.offset = record.offset + 1
            table = self.replica.fold(record.key, record.value, record.row)
            if table is not None:
                assert rows_shown(table) == committed(self.topic, table.epoch)
                self.tables.append(table)

    def read_to_end(self) -> ReplicaStanding:
        """Read everything that is there."""
        self.read(1 << 30)
        return self.replica.at_end()

    def rebuild(self) -> None:
        """Begin again from the start of the topic, remembering the last table that was shown."""
        self.replica = TableReplica(self.tables[-1] if self.tables else None)
        self.offset = 0


@given(steps)
@settings(max_examples=3 * settings().max_examples)
def test_a_reader_ends_whole_and_shows_only_committed_tables(drawn: list[tuple]) -> None:  # type: ignore[type-arg]  # steps of several shapes
    """Commits, compactions and reads in any order: only committed tables are shown, and the newest one in the end."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS})
    reader = Reader(topic)
    lost_tombstones = False
    for step in drawn:
        if step[0] == "commit":
            topic.commit(step[1])
        elif step[0] == "read":
            reader.read(step[1])
        else:
            topic.compact(int(step[1] * topic.end_offset), drop_tombstones=step[2])
            lost_tombstones = lost_tombstones or step[2]
    standing = reader.read_to_end()
    if standing is ReplicaStanding.MUST_REBUILD:
        assert lost_tombstones, "compaction that keeps tombstones must never make a reader rebuild"
        reader.rebuild()
        standing = reader.read_to_end()
    assert standing is ReplicaStanding.WHOLE
    assert rows_shown(reader.tables[-1]) == committed(topic, topic.epoch)
    epochs = [table.epoch for table in reader.tables]
    assert epochs == sorted(epochs)
    assert reader.replica.digest == reader.tables[-1].digest
    assert set(reader.replica.row_hashes) == set(topic.rows)


@given(foreign_steps)
@settings(max_examples=3 * settings().max_examples)
def test_foreign_records_end_no_reader_and_a_repair_makes_the_table_whole(drawn: list[tuple]) -> None:  # type: ignore[type-arg]  # steps of several shapes
    """Good epochs, foreign records and compactions in any order: nothing raises, only committed tables are shown."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS})
    reader = Reader(topic)
    reader.read(2)
    for kind, *arguments in drawn:
        match kind:
            case "commit":
                topic.commit(arguments[0])
            case "foreign":
                topic.append_foreign(*arguments[0])
            case "read":
                reader.read(arguments[0])
            case "end":
                if reader.read_to_end() is ReplicaStanding.MUST_REBUILD:
                    reader.rebuild()
            case "repair":
                topic.repair()
            case _:
                topic.compact(int(arguments[0] * topic.end_offset), drop_tombstones=False)
    topic.repair()
    if reader.read_to_end() is ReplicaStanding.MUST_REBUILD:
        reader.rebuild()
        assert reader.read_to_end() is ReplicaStanding.WHOLE
    assert reader.replica.at_end() is ReplicaStanding.WHOLE
    assert reader.tables[-1].epoch == topic.epoch
    assert rows_shown(reader.tables[-1]) == committed(topic, topic.epoch)
    assert reader.tables[-1].unreadable == {}
    epochs = [table.epoch for table in reader.tables]
    assert epochs == sorted(epochs)
    beginner = Reader(topic)
    assert beginner.read_to_end() is ReplicaStanding.WHOLE
    assert rows_shown(beginner.tables[-1]) == committed(topic, topic.epoch)


@given(steps, st.data())
def test_without_compaction_every_epoch_is_shown_once(drawn: list[tuple], data: st.DataObject) -> None:  # type: ignore[type-arg]  # steps of several shapes
    """Where nothing was compacted each epoch is shown exactly once, in whatever pieces the topic is read."""
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: SETTINGS})
    for step in drawn:
        if step[0] == "commit":
            topic.commit(step[1])
    reader = Reader(topic)
    while reader.offset < topic.end_offset - 1:
        reader.read(data.draw(st.integers(1, 5)))
    assert reader.replica.at_end() is ReplicaStanding.WHOLE
    assert [table.epoch for table in reader.tables] == list(range(1, topic.epoch + 1))
