"""Cases in which two readings of a rule would part: ends, epochs met twice, and markers that prove too little."""

from dataclasses import replace

from controlplane.codec.table import encode_row
from controlplane.core.bundles.bundle import Bundle, Namespace, equal_bundles
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.rows import SETTINGS_KEY, TableRow, bundle_key, namespace_key, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from tests.vectors.script_rows import (
    EMPTY,
    HIGH,
    HIGH_KEY,
    KEYS,
    LAST_KEY,
    LOW_KEY,
    MARKER,
    REFUSED,
    WAITING,
    WHOLE,
    fails,
    finds,
    finds_bundle,
    first_table,
    namespace,
    node,
    slot,
)
from tests.vectors.script_topic import Script

QUARTER = "kv/0x00000000_0x40000000"


def narrow() -> list[Script]:
    """One script a question."""
    return [*_ends(), *_met_again(), *_proving_too_little(), *_configured(), *_odd_settings()]


def _ends() -> list[Script]:
    early = Script(
        "an end that was asked for too early",
        "T9 T10",
        "The end of before lies in the middle of what has come meanwhile: rows without their marker mean nothing yet.",
    )
    early.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    end = early.next_offset
    early.commit(slot(3, "n2", since=3) | slot(0, "n2", "n1", since=3))
    lookups = [finds(KEYS[0], 0, "n1"), finds(KEYS[3], 3, "n1")]
    early.read_part(end + 1, earlier_end=end, in_use=2, lookups=lookups)
    early.read(WHOLE, [3], in_use=3, rebuilt=False, lookups=[finds(KEYS[0], 0, "n2"), finds(KEYS[3], 3, "n2")])

    first = Script(
        "an end that was asked for too early by a reader that begins",
        "T9 R9",
        "It has shown the tables of before, and was not at the end: it routes by none of them.",
    )
    first.commit(first_table()).commit(slot(3, "n1", since=2))
    end = first.next_offset
    first.commit(slot(3, "n2", since=3) | slot(0, "n2", "n1", since=3))
    first.read_part(end + 1, [1, 2], earlier_end=end).read(WHOLE, [3], in_use=3, rebuilt=False)

    nothing = Script(
        "a tombstone at the marker's key alone",
        "R2 R9 R13",
        "It is a record under the marker's key, and a marker may have been there before it: not empty.",
    )
    nothing.append(MARKER, None).control().read(WAITING)
    nothing.commit(first_table()).read(WHOLE, [1], in_use=1)

    came_and_went = Script(
        "rows that came and went before the first table", "R9 R12", "No live row and no marker: empty as before."
    )
    came_and_went.read(EMPTY).append(b"nonsense", b"x").append(b"nonsense", None).control().read(EMPTY)
    return [early, first, nothing, came_and_went.commit(first_table()).read(WHOLE, [1], in_use=1)]


def _met_again() -> list[Script]:
    repeated = Script(
        "an epoch written again, and read again",
        "R4 R6 R10",
        "Beginning again, the reader meets both markers of its epoch. The first one is no lower than its table.",
    )
    repeated.commit(first_table()).mark(seq=7, term=2).control().read(WHOLE, [1], in_use=1)
    repeated.truncated(repeated.next_offset - 1).read(WHOLE, [], in_use=1, rebuilt=True)

    shown = Script(
        "a table that was shown and is gone",
        "R9 R12",
        "The reader has never routed by it, and knows it all the same: the topic was emptied.",
    )
    shown.commit(first_table()).append(b"nonsense", b"x").control().commit(slot(3, "n1", since=2))
    shown.read(WAITING, [1]).recreated("77aa00").read(REFUSED)

    hidden = Script(
        "a topic that was emptied but for garbage at the marker's key",
        "R12 R13",
        "A marker may have been there: the reader keeps its table and waits.",
    )
    hidden.commit(first_table()).read(WHOLE, [1], in_use=1).recreated("77aa00").append(MARKER, b"garbage").control()
    hidden.read(WAITING, in_use=1, rebuilt=True).commit(first_table())
    scripts = [repeated, shown, hidden.read(REFUSED)]

    lost = Script(
        "a tombstone that is lost while a reader waits",
        "R11",
        "The leader has removed a foreign row, and the tombstone is no longer kept: only reading again shows that.",
    )
    lost.commit(first_table()).append(b"nonsense", b"x").control().commit(slot(3, "n1", since=2)).read(WAITING, [1])
    lost.append(b"nonsense", None).commit(slot(3, "n2", since=3))
    lost.compacted(below=lost.next_offset, keep_tombstones=False)
    return [*scripts, lost.read(WHOLE, [3], in_use=3, rebuilt=True)]


def _proving_too_little() -> list[Script]:
    unsettled = Script(
        "another log's marker that counts rows without settings",
        "T8 R5",
        "Count and digest are right, and it fits nothing: a table has its settings.",
    )
    row = encode_row(Slot(3, "n9", (), Epoch(1)))
    unsettled.rows = {slot_key(3).encode(): row}
    unsettled.append(slot_key(3).encode(), row)
    unsettled.append(MARKER, encode_row(replace(unsettled.marker(epoch=5, term=7, seq=50), log_id="77aa00"))).control()
    unsettled.read(WAITING)
    unsettled.rows = {}
    scripts = [unsettled.commit(first_table()).read(WHOLE, [1], in_use=1)]

    followed = Script(
        "another log's table, and a row behind it",
        "R12",
        "The topic was made anew, and a foreign row hides it: the reader waits, and refuses after the repair.",
    )
    followed.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    followed.recreated("77aa00").commit(first_table()).append(b"nonsense", b"x").append(b"nonsense", None)
    followed.read(WAITING, in_use=2, rebuilt=True)
    return [*scripts, followed.commit(node("n3")).read(REFUSED)]


def _configured() -> list[Script]:
    ours, theirs = "0f3c9a", "77aa00"
    behind = Script(
        "a configured log id behind another log's table",
        "R3 R5 R12",
        "The reader knows from the start that the first table is foreign, and does not show it.",
    )
    behind.recreated(theirs).commit(first_table())
    behind.log_id, behind.term, behind.epoch, behind.seq = ours, 1, 0, 0
    behind.commit(slot(3, "n1", since=1)).read(WHOLE, [1], in_use=1, log_id=ours, lookups=[finds(KEYS[3], 3, "n1")])
    behind.read(WAITING, [1], new_reader=True)

    other = Script(
        "a configured log id, and another log's topic",
        "R5 R12",
        "It counts like a table in use of epoch 0: the topic ends with another log's table, and is refused.",
    )
    other.commit(first_table()).read(REFUSED, log_id=theirs).read(WHOLE, [1], in_use=1, new_reader=True, log_id=ours)

    nothing = Script(
        "a configured log id, and an empty topic", "R5 R12", "No table was ever committed: that is no contradiction."
    )
    nothing.read(EMPTY, log_id=ours).commit(first_table()).read(WHOLE, [1], in_use=1)

    hidden = Script(
        "a configured log id, and a topic that foreign rows hide",
        "R5 R12",
        "Another log's marker that nothing fits proves nothing: the reader waits.",
    )
    hidden.append(b"nonsense", b"x").commit(first_table()).read(WAITING, log_id=theirs)
    return [behind, other, nothing, hidden.append(b"nonsense", None).commit(node("n3")).read(REFUSED)]


def _odd_settings() -> list[Script]:
    rows = Script("a slot without a row", "H6", "It has no owner in this epoch.")
    table = first_table()
    del table[slot_key(2)]
    rows.commit(table).read(WHOLE, [1], in_use=1, lookups=[finds(KEYS[2], 2, None), finds(KEYS[1], 1, "n1")])

    overlap = Script(
        "bundles that overlap", "B2 R8", "A defect of the leader: the key that two ranges hold has no bundle."
    )
    overlap.commit(first_table() | namespace("n1", "n2") | {bundle_key(QUARTER): Bundle("kv", 0, 1 << 30, "n3")})
    overlap.read(WHOLE, [1], in_use=1, lookups=[fails(LOW_KEY, namespace="kv"), finds_bundle(HIGH_KEY, HIGH, "n2")])

    settings = encode_row(TableSettings(4, 2, HashFunction.CRC32C, 2_500))
    odd = Script(
        "a hash function that the reader does not know",
        "H2 R8",
        "Settings with an unknown value cannot be read: such a table is not shown.",
    )
    odd.commit(first_table()).read(WHOLE, [1], in_use=1)
    odd.commit({SETTINGS_KEY: settings.replace(b"\x0ccrc32c", b"\x0ccrc99x")})
    odd.read(WAITING, in_use=1, lookups=[finds("a", 0, "n1")]).commit(first_table())
    return [rows, overlap, odd.read(WHOLE, [3], in_use=3), _last_hash(), _tenants_namespace()]


def _last_hash() -> Script:
    last = Script("the last hash", "B2", "The last bundle holds its upper bound, and the same hashes if that is 2^32.")
    last.commit(first_table() | namespace("n1", "n2"))
    last.read(WHOLE, [1], in_use=1, lookups=[finds_bundle(LAST_KEY, HIGH, "n2")])
    early = Bundle("kv", 1 << 31, 1 << 32, "n1")
    last.commit({bundle_key(HIGH): None, bundle_key(early.bundle_id): early})
    return last.read(WHOLE, [2], in_use=2, lookups=[finds_bundle(LAST_KEY, early.bundle_id, "n1")])


def _tenants_namespace() -> Script:
    both = Script(
        "a namespace whose name begins with another one's",
        "B2 B4",
        "Names of namespaces may hold slashes; the bundle of a key is that of its own namespace.",
    )
    whole = replace(equal_bundles("kv/eu", 1)[0], owner="n1")
    rows: dict[str, TableRow | bytes | None] = {
        namespace_key("kv/eu"): Namespace("kv/eu", 1),
        bundle_key(whole.bundle_id): whole,
    }
    both.commit(first_table() | namespace("n1", "n2") | rows)
    found = [finds_bundle(HIGH_KEY, HIGH, "n2"), finds_bundle(HIGH_KEY, whole.bundle_id, "n1")]
    return both.read(WHOLE, [1], in_use=1, lookups=found)
