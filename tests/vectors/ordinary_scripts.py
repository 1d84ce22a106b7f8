"""A topic that only its leader writes: plain epochs, compaction, later versions, and topics that were lost."""

from typing import Any

from controlplane.codec.table import encode_row
from controlplane.core.routing.rows import SETTINGS_KEY, bundle_key, namespace_key, node_key, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from tests.vectors.script_rows import (
    EMPTY,
    HIGH,
    HIGH_KEY,
    KEYS,
    LATER_SCHEMA,
    LOW,
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


def plain() -> list[Script]:
    """The ordinary life of a topic."""
    epochs = Script("plain epochs", "T4 T7 T10 R6", "Epochs one by one, each closed by a control record.")
    epochs.commit(first_table()).commit(slot(3, "n2", since=2)).commit(namespace("n1", None))
    lookups = [
        *(finds(KEYS[slot_id], slot_id, leader) for slot_id, leader in enumerate(["n1", "n1", "n2", "n2"])),
        finds_bundle(LOW_KEY, LOW, "n1"),
        finds_bundle(HIGH_KEY, HIGH, None),
    ]
    epochs.read(WHOLE, [1, 2, 3], in_use=3, lookups=lookups)
    epochs.commit(slot(0, "n2", since=4)).read(WHOLE, [4], in_use=4, rebuilt=False, lookups=[finds("", 0, "n2")])
    epochs.read(WHOLE, [], in_use=4, rebuilt=False)

    nothing = Script("an empty topic", "R12", "No leader has ever led: there is nothing, and nothing is wrong.")
    nothing.read(EMPTY).commit(first_table()).read(WHOLE, [1], in_use=1)

    controls = Script(
        "an end behind control records",
        "T9 T10",
        "Aborted transactions leave control records at the end, and alone in a topic. The end is reached all the same.",
    )
    controls.control().control().read(EMPTY)
    controls.commit(first_table()).control().control().control().read(WHOLE, [1], in_use=1)

    removed = Script("a removed row", "T1 T7", "A tombstone takes a row out of table, count and digest.")
    removed.commit(first_table() | namespace("n1", "n2")).read(WHOLE, [1], in_use=1)
    removed.commit({node_key("n2"): None, **slot(0, "n1", since=1), **slot(1, "n1"), **slot(2, "n1", since=2)})
    removed.read(WHOLE, [2], in_use=2, rebuilt=False, lookups=[finds(KEYS[2], 2, "n1")])

    repeated = Script(
        "an epoch written again", "R4 R6", "The same epoch and digest under a later seq and term: no change."
    )
    repeated.commit(first_table()).read(WHOLE, [1], in_use=1)
    repeated.mark(seq=7, term=2).read(WHOLE, [], in_use=1, rebuilt=False)

    fallen = Script(
        "an end before the newest marker",
        "R9",
        "A reader that begins may see many epochs on its way; only that of the end is routed by.",
    )
    fallen.commit(first_table())
    for number in range(2, 6):
        fallen.commit(slot(3, f"n{1 + number % 2}", since=number))
    fallen.read(WHOLE, [1, 2, 3, 4, 5], in_use=5, lookups=[finds(KEYS[3], 3, "n2")])
    return [epochs, nothing, controls, removed, repeated, fallen]


def compacted() -> list[Script]:
    """What compaction leaves."""
    read_on = Script(
        "compaction before the end",
        "R7",
        "A row that a later one replaces is gone, and a marker of its epoch is there: it does not fit, read on.",
    )
    read_on.commit(first_table()).commit(slot(3, "n1", since=2)).commit(slot(0, "n2", "n1", since=3))
    read_on.compacted(below=read_on.next_offset - 2)
    read_on.read(WHOLE, [3], in_use=3, lookups=[finds("a", 0, "n2"), finds(KEYS[3], 3, "n1")])

    newest = Script("only the newest table is left", "R7", "Everything is compacted: one epoch can be seen.")
    newest.commit(first_table()).commit(slot(3, "n1", since=2)).commit({node_key("n2"): None, **slot(2, "n1", since=3)})
    newest.compacted(below=newest.next_offset, keep_tombstones=False).read(WHOLE, [3], in_use=3)

    behind = Script(
        "compaction behind a reader", "R7", "What was read already is compacted: the reader notices nothing."
    )
    behind.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    behind.compacted(below=behind.next_offset).commit(slot(3, "n2", since=3)).read(WHOLE, [3], in_use=3, rebuilt=False)

    lost = Script(
        "a lost tombstone",
        "R10 R15",
        "A row was removed while the reader was away, and its tombstone is gone. The digest tells, at the end.",
    )
    lost.commit(first_table()).commit(node("n3")).read(WHOLE, [1, 2], in_use=2)
    lost.commit({node_key("n3"): None}).compacted(below=lost.next_offset, keep_tombstones=False)
    lost.read(WHOLE, [3], in_use=3, rebuilt=True)

    passed = Script(
        "markers passed by while beginning again",
        "R6 R10",
        "Beginning again, the reader meets markers that fit and are older than its table: they are not shown again.",
    )
    passed.commit(first_table()).commit(slot(3, "n1", since=2))
    row = passed.next_offset
    passed.commit(node("n3")).read(WHOLE, [1, 2, 3], in_use=3)
    tombstone = passed.next_offset
    passed.commit({node_key("n3"): None}).without(row, tombstone).commit(slot(3, "n2", since=5))
    passed.read(WHOLE, [4, 5], in_use=5, rebuilt=True)

    again = Script(
        "beginning again at the same epoch",
        "R6 R10",
        "The position is no longer there, the table is: it is the same epoch, and nothing changes.",
    )
    again.commit(first_table()).commit(slot(3, "n1", since=2)).control().read(WHOLE, [1, 2], in_use=2)
    again.truncated(again.next_offset - 1).read(WHOLE, [], in_use=2, rebuilt=True)
    return [read_on, newest, behind, lost, passed, again]


def refused() -> list[Script]:
    """What is no continuation."""
    scripts = []
    forgeries: dict[str, dict[str, Any]] = {
        "a falling term": {"term": 4, "epoch": 3, "seq": 3},
        "a falling epoch": {"term": 5, "epoch": 1, "seq": 3},
        "a falling epoch that nothing fits": {"term": 5, "epoch": 1, "seq": 3, "digest": "0123456789abcdef"},
        "a falling seq": {"term": 5, "epoch": 3, "seq": 1},
        "an epoch with two digests": {"term": 5, "epoch": 2, "seq": 3, "digest": "0123456789abcdef"},
    }
    for name, changes in forgeries.items():
        script = Script(name, "R4 R12", "No leader that Kafka lets write does that: the reader stops at its table.")
        script.term = 5
        script.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
        scripts.append(script.mark(**changes).read(REFUSED))

    first = Script("a falling term before the first end", "R4", "The same in a reader that has no table yet.")
    first.term = 5
    first.commit(first_table())
    first.term = 4
    scripts.append(first.commit(slot(3, "n1", since=2)).read(REFUSED))

    recreated = Script(
        "a topic made anew under another log",
        "R12 R14",
        "The reader that knew the old one refuses; one without memory reads the new one.",
    )
    recreated.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    recreated.recreated("77aa00").commit(first_table()).read(REFUSED)
    scripts.append(recreated.read(WHOLE, [1], in_use=1, new_reader=True))

    longer = Script(
        "a topic made anew, longer than the old one",
        "R3 R10 R12",
        "The position is there and means something else: foreign markers, rows that fit none, another log at the end.",
    )
    longer.commit(first_table()).read(WHOLE, [1], in_use=1).recreated("77aa00").commit(first_table())
    for number in range(2, 5):
        longer.commit(slot(3, "n1", since=number))
    scripts.append(longer.read(REFUSED))

    back = Script(
        "a topic that went back", "R10 R12", "The newest epoch is gone: routing by less would take moves back."
    )
    back.commit(first_table()).commit(slot(3, "n1", since=2))
    kept = back.next_offset
    back.commit(slot(3, "n2", since=3)).read(WHOLE, [1, 2, 3], in_use=3)
    scripts.append(back.truncated(kept).read(REFUSED))

    emptied = Script("a topic that was emptied", "R10 R12", "Made anew, and nobody has written yet.")
    emptied.commit(first_table()).read(WHOLE, [1], in_use=1)
    scripts.append(emptied.recreated("77aa00").read(REFUSED))
    return scripts


def of_later_versions() -> list[Script]:
    """Rows that a later version of the software has written, and confirmed by its marker."""
    kind = Script(
        "rows of an unknown kind", "T5 R8", "They count in row count and digest, and are passed by otherwise."
    )
    kind.commit(first_table() | {"main/pool/p1": LATER_SCHEMA, "main/pool/a/b": b"no Avro at all"})
    kind.read(WHOLE, [1], in_use=1, lookups=[finds("a", 0, "n1")])
    kind.commit({"main/pool/p1": None}).read(WHOLE, [2], in_use=2, rebuilt=False)

    version = Script(
        "a slot of an unknown version",
        "R8",
        "Keys of that slot cannot be routed; all others can, and it may come back.",
    )
    version.commit(first_table() | {slot_key(1): LATER_SCHEMA})
    version.read(WHOLE, [1], in_use=1, lookups=[finds("a", 0, "n1"), fails(KEYS[1]), finds(KEYS[2], 2, "n2")])
    version.commit(slot(1, "n2", since=2)).read(WHOLE, [2], in_use=2, lookups=[finds(KEYS[1], 1, "n2")])
    version.commit({slot_key(2): LATER_SCHEMA}).read(WHOLE, [3], in_use=3, lookups=[fails(KEYS[2])])

    bundles = Script("a bundle of an unknown version", "B4 R8", "Its key says which range cannot be routed.")
    bundles.commit(first_table() | namespace("n1", "n2") | {bundle_key(HIGH): LATER_SCHEMA})
    found = [finds_bundle(LOW_KEY, LOW, "n1"), fails(HIGH_KEY, namespace="kv"), finds("a", 0, "n1")]
    bundles.read(WHOLE, [1], in_use=1, lookups=found)

    others = Script(
        "a node and a namespace of unknown versions", "R8", "Slots and bundles are found; addresses are another matter."
    )
    unreadable = {node_key("n1"): LATER_SCHEMA, namespace_key("kv"): LATER_SCHEMA}
    others.commit(first_table() | namespace("n1", "n2") | unreadable)
    others.read(WHOLE, [1], in_use=1, lookups=[finds("a", 0, "n1"), finds_bundle(LOW_KEY, LOW, "n1")])

    settings = Script(
        "settings of an unknown version",
        "R8 R11",
        "No slot can be found without them: such a table is not shown, the last one stays, and only an upgrade helps.",
    )
    settings.commit(first_table()).read(WHOLE, [1], in_use=1)
    settings.commit({SETTINGS_KEY: LATER_SCHEMA}).read(WAITING, [], in_use=1, lookups=[finds("a", 0, "n1")])
    settings.read(WAITING, [1], new_reader=True)

    marker = Script(
        "a marker of an unknown version",
        "R2 R11",
        "Epochs can no longer be told apart: the last table stays, and only an upgrade helps.",
    )
    marker.commit(first_table()).read(WHOLE, [1], in_use=1)
    row = encode_row(Slot(3, "n1", (), Epoch(2)))
    marker.append(slot_key(3).encode(), row).append(MARKER, LATER_SCHEMA).control().read(WAITING, [], in_use=1)
    return [kind, version, bundles, others, settings, marker]


def unreadable_rows() -> list[Script]:
    """Rows that the leader's marker counts, and that a reader cannot read for whatever reason."""
    unread = Script(
        "rows that cannot be read, confirmed by their marker",
        "F3 R8",
        "Whatever is wrong with a row that the marker counts: its key cannot be routed, and all others can.",
    )
    table = first_table() | namespace("n1", "n2")
    rows = {name: encode_row(row) for name, row in table.items() if row is not None and not isinstance(row, bytes)}
    low, high = bundle_key(LOW), bundle_key(HIGH)
    altered = {
        slot_key(0): rows[node_key("n1")],
        slot_key(1): rows[slot_key(1)] + b"\x00",
        slot_key(2): rows[slot_key(2)][:-1],
        slot_key(3): rows[slot_key(1)],
        low: rows[high],
    }
    unread.commit(rows | altered)
    found = [*(fails(key) for key in KEYS.values()), fails(LOW_KEY, namespace="kv"), finds_bundle(HIGH_KEY, HIGH, "n2")]
    unread.read(WHOLE, [1], in_use=1, lookups=found)
    return [unread]
