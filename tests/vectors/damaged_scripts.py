"""What a table reader meets where others have written into the topic too."""

from dataclasses import replace

from controlplane.codec.table import encode_row
from controlplane.core.routing.rows import node_key, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq
from tests.vectors.script_rows import KEYS, MARKER, REFUSED, WAITING, WHOLE, finds, first_table, node, slot
from tests.vectors.script_topic import Script


def damaged() -> list[Script]:
    """What somebody else wrote, until the leader repairs the topic."""
    scripts = []
    foreign: dict[str, list[tuple[bytes, bytes | None]]] = {
        "garbage in the place of a row": [(slot_key(1).encode(), b"garbage")],
        "an empty value in the place of a row": [(slot_key(1).encode(), b"")],
        "a row that was cut": [(slot_key(1).encode(), encode_row(Slot(1, "n9", (), Epoch(1)))[:-1])],
        "a row with a byte too many": [(slot_key(1).encode(), encode_row(Slot(1, "n9", (), Epoch(1))) + b"\x00")],
        "a row under another row's key": [(slot_key(1).encode(), encode_row(Slot(2, "n9", (), Epoch(1))))],
        "a marker under a row's key": [(slot_key(1).encode(), None)],
        "a row of nobody": [(slot_key(1).encode(), encode_row(Slot(1, "n9", (), Epoch(1))))],
        "a removed row": [(slot_key(1).encode(), None)],
        "keys of another kind": [(b"nonsense", b"x"), (b"other/slot/1", encode_row(Slot(1, "n9", (), Epoch(1))))],
        "a slot beyond the count": [(b"main/slot/99", encode_row(Slot(99, "n9", (), Epoch(1))))],
        "keys that are no UTF-8": [(b"\xff", b"x"), (b"\xfe", b"x")],
    }
    for name, records in foreign.items():
        script = Script(
            f"damage: {name}",
            "T3 T5 R1 R9 R10 R11",
            "Foreign rows after the last marker change nothing. The next marker does not fit: the table stays, until "
            "the leader has repaired the topic.",
        )
        script.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
        written = encode_row(script.marker()) if name == "a marker under a row's key" else None
        for key, value in records:
            script.append(key, written or value).control()
        lookups = [finds(KEYS[1], 1, "n1"), finds(KEYS[3], 3, "n1")]
        script.read(WHOLE, [], in_use=2, lookups=lookups)
        script.commit(slot(3, "n2", since=3)).read(WAITING, [], in_use=2, lookups=lookups)
        script.read(WAITING, [1, 2], new_reader=True)
        for key, _ in records:
            if key not in script.rows:
                script.append(key, None)
        script.commit(slot(1, "n1", "n2") | slot(3, "n2", since=3))
        scripts.append(script.read(WHOLE, [4], in_use=4, lookups=[finds(KEYS[1], 1, "n1"), finds(KEYS[3], 3, "n2")]))
    return scripts


def odd_records() -> list[Script]:
    """Records that are no rows of anybody, markers that are none, and a marker that nothing fits."""
    scripts = []
    harmless = Script("a foreign tombstone", "R1 R10", "A tombstone of a key that is not there changes nothing.")
    harmless.commit(first_table()).read(WHOLE, [1], in_use=1)
    scripts.append(harmless.append(b"nonsense", None).control().read(WHOLE, [], in_use=1))

    keyless = Script("a record without a key", "T3", "It is no row and no marker: passed by.")
    keyless.commit(first_table()).read(WHOLE, [1], in_use=1).append(None, b"x").append(None, None).control()
    scripts.append(keyless.read(WHOLE, [], in_use=1).commit(slot(3, "n1", since=2)).read(WHOLE, [2], in_use=2))

    for name, value in {
        "garbage": b"garbage",
        "a tombstone": None,
        "a row": encode_row(Slot(1, "n9", (), Epoch(1))),
    }.items():
        at_marker = Script(
            f"{name} at the marker's key", "R2", "It is no row and no marker: the last marker stays, and rows fit it."
        )
        at_marker.commit(first_table()).read(WHOLE, [1], in_use=1).append(MARKER, value).control()
        at_marker.read(WHOLE, [], in_use=1).commit(slot(3, "n1", since=2)).read(WHOLE, [2], in_use=2)
        scripts.append(at_marker.append(b"nonsense", b"x").control().read(WHOLE, [], in_use=2))

    return scripts


def hidden_markers() -> list[Script]:
    """What stands where a marker was, and markers that nothing fits."""
    scripts = []
    over = Script(
        "a marker that garbage was compacted over",
        "R13",
        "Rows without any marker: a reader that begins waits, one that begins again keeps its table and waits.",
    )
    over.commit(first_table() | node("n3")).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    over.append(MARKER, b"garbage").control().control().read(WHOLE, [], in_use=2)
    over.compacted(below=over.next_offset).truncated(over.next_offset - 1).read(WAITING, [], in_use=2, rebuilt=True)
    over.read(WAITING, [], new_reader=True)
    scripts.append(over.commit(slot(3, "n2", since=3)).read(WHOLE, [3], in_use=3))

    away = Script(
        "a marker that was compacted away under a reader",
        "R9",
        "Rows of an epoch, and garbage where its marker was: the newest table cannot be told before the next marker.",
    )
    away.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    marker_at = away.next_offset + 1
    away.commit(slot(3, "n2", since=3)).append(MARKER, b"garbage").control().without(marker_at)
    away.read(WAITING, [], in_use=2).commit(slot(0, "n2", "n1", since=4))
    scripts.append(away.read(WHOLE, [4], in_use=4, lookups=[finds(KEYS[0], 0, "n2"), finds(KEYS[3], 3, "n2")]))

    alone = Script("garbage at the marker's key alone", "R9 R13", "A marker may have been there: not empty.")
    alone.append(MARKER, b"garbage").control().read(WAITING)
    scripts.append(alone.commit(first_table()).read(WHOLE, [1], in_use=1))

    later = Script("a lost tombstone after a repair", "R10 R11", "A reader that has waited begins again.")
    later.commit(first_table() | node("n3")).append(b"nonsense", b"x").commit(slot(3, "n1", since=2))
    later.read(WAITING, [1]).append(b"nonsense", None).commit(slot(3, "n2", since=3)).read(WHOLE, [3], in_use=3)
    later.commit({node_key("n3"): None}).compacted(below=later.next_offset, keep_tombstones=False)
    scripts.append(later.read(WHOLE, [4], in_use=4, rebuilt=True))

    counted = Script("a marker with another row count", "T8 R4 R7", "Right digest, wrong count: not shown.")
    counted.commit(first_table())
    counted.epoch, counted.seq = 2, 2
    counted.mark(row_count=3).read(WAITING, [1])
    scripts.append(counted.commit(slot(3, "n1", since=3)).read(WHOLE, [3], in_use=3))
    return scripts


def of_other_logs() -> list[Script]:
    """Markers and rows of another cluster, or of another life of this one."""
    behind = Script("another log's marker behind ours", "R3 R5", "A foreign marker without rows: passed by.")
    behind.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    behind.mark(log_id="77aa00", epoch=9, term=9, seq=99).read(WHOLE, [], in_use=2)
    behind.commit(slot(3, "n2", since=3)).read(WHOLE, [3], in_use=3, rebuilt=False)

    rows = Script(
        "another log's table behind ours", "R3 R10 R11", "Its rows damage ours, until the leader repairs them."
    )
    rows.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    ours = dict(rows.rows)
    rows.append(slot_key(3).encode(), encode_row(Slot(3, "n9", (), Epoch(1))))
    rows.rows[slot_key(3).encode()] = encode_row(Slot(3, "n9", (), Epoch(1)))
    rows.mark(log_id="77aa00", epoch=1, seq=1).read(WAITING, [], in_use=2)
    rows.rows = ours
    scripts = [behind, rows.commit(slot(3, "n1", since=2)).read(WHOLE, [3], in_use=3)]

    over = Script(
        "another log's marker compacted over ours",
        "R12 R13",
        "The rows are ours, and the foreign marker fits none: the topic is damaged, and not another one.",
    )
    over.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    over.mark(log_id="77aa00", epoch=9, term=9, seq=99, digest="0123456789abcdef").control()
    over.compacted(below=over.next_offset).read(WHOLE, [], in_use=2)
    over.truncated(over.next_offset - 1).read(WAITING, [], in_use=2, rebuilt=True)
    scripts.append(over.commit(slot(3, "n2", since=3)).read(WHOLE, [3], in_use=3))

    anew = Script(
        "a topic made anew and damaged",
        "R12",
        "While foreign rows hide whose topic it is, the reader waits. It refuses once the other log's table is whole.",
    )
    anew.commit(first_table()).commit(slot(3, "n1", since=2)).commit(slot(3, "n2", since=3))
    anew.read(WHOLE, [1, 2, 3], in_use=3).recreated("77aa00").commit(first_table()).append(b"nonsense", b"x")
    anew.read(WAITING, [], in_use=3, rebuilt=True).append(b"nonsense", None).commit(slot(3, "n1", since=2))
    scripts.append(anew.read(REFUSED))
    return scripts


def of_unknown_logs() -> list[Script]:
    """Foreign markers that a reader finds before it knows which log is its own."""
    scripts: list[Script] = []
    before = Script(
        "another log's marker before ours",
        "R5",
        "A reader that begins does not take its log id from a marker that its rows do not fit.",
    )
    before.commit(first_table()).without(0)
    foreign = before.marker(log_id="77aa00", digest="0123456789abcdef", epoch=5, term=7, seq=50)
    before = Script(before.name, "R5", before.about)
    before.append(MARKER, encode_row(foreign)).control().commit(first_table()).commit(slot(3, "n1", since=2))
    scripts.append(before.read(WHOLE, [1, 2], in_use=2))

    several = Script(
        "markers of another log that contradict each other, before ours",
        "R4 R5",
        "While the reader's log id is unknown, any marker may be foreign: they are not compared with each other.",
    )
    several.append(MARKER, encode_row(foreign)).append(MARKER, encode_row(replace(foreign, seq=Seq(49)))).control()
    several.commit(first_table()).commit(slot(3, "n1", since=2)).read(WHOLE, [1, 2], in_use=2)
    scripts.append(several)

    fitting = Script(
        "another log's marker over an empty topic",
        "T8 R5",
        "No rows, row count 0 and digest 0: it fits nothing, because a table has its settings.",
    )
    empty = replace(foreign, row_count=0, digest="0" * 16)
    fitting.append(MARKER, encode_row(empty)).control().commit(first_table()).read(WHOLE, [1], in_use=1)
    scripts.append(fitting)
    return scripts
