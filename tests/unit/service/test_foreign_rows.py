"""Whole controllers over a topic ``routing-table`` into which more than the leader writes."""

import time
from dataclasses import replace
from functools import partial

import pytest

from controlplane.codec.table import decode_row, encode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.audit.log_audit import LogAudit
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, TableRow, key_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.verification.log_verification import LogVerification
from controlplane.errors import LogContinuityError
from controlplane.inspection.auditing import Auditor
from controlplane.ports import OutgoingRecord
from controlplane.service import publisher, table_watch
from controlplane.testing import MemoryEventWriter, MemoryLogReader
from tests.helpers.memory_cluster import ObservedCluster, assert_log_is_whole
from tests.helpers.polling import poll_until
from tests.helpers.sources import source_of


def test_foreign_rows_are_written_over_by_a_new_leader() -> None:
    """Garbage, a row that looks right, a nonsense marker, a key that is no text: the table is whole again."""
    with ObservedCluster() as world:
        first = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        first.end()
        throw_garbage(world)
        world.start("c2")
        # The table of the former leader has the same owners, so they say nothing of what the new one has done.
        world.wait_until(lambda: len({decision.term for decision in world.decisions()}) == 2)
        last = world.decisions()[-1]
        assert CauseKind.TABLE_REPUBLISHED in [cause.kind for cause in last.causes]
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert_log_is_whole(world)
        assert_table_is_clean(world)


def test_foreign_rows_are_written_over_by_the_leader_that_runs() -> None:
    """It needs no new term for it; the decision says why, and the audit takes it again."""
    with ObservedCluster() as world:
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        term = world.decisions()[-1].term
        throw_garbage(world)
        world.wait_until(lambda: table_repairs(world))
        cause = table_repairs(world)[0].causes[0]
        assert cause.subject == "c1"
        assert "'main/slot/0'" in cause.evidence
        world.wait_until(lambda: is_clean(world))
        assert set(world.owners().values()) == {"n1"}
        assert_log_is_whole(world)
        assert {decision.term for decision in world.decisions()} == {term}
        log_audit = LogAudit()
        log, inputs = (source_of(MemoryLogReader(world.cluster, world.broker)) for _ in range(2))
        audited = list(Auditor(log_audit, log, inputs).run())
        assert [each for each in audited if each.differences] == []
        assert log_audit.retaken == len(world.decisions())
        verification = LogVerification()
        assert [complaint for decision in world.decisions() for complaint in verification.check(decision)] == []


def test_an_epoch_of_a_damaged_table_is_shown_before_the_next_repair() -> None:
    """Repairs are paced; what is decided meanwhile comes with the whole table, or readers would wait for that long."""
    with ObservedCluster() as world:
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        for number in range(1, 4):
            throw_row(world)
            world.wait_until(partial(has_repaired, world, number))
        throw_row(world)
        time.sleep(0.5)
        world.join("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        assert len(table_repairs(world)) == 3
        assert_table_is_clean(world)


def test_foreign_rows_beyond_one_transaction_keep_no_term_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    """An opening that removed them all would be aborted for ever; the leader removes them in parts once it leads."""
    monkeypatch.setattr(publisher, "_MOST_FOREIGN_KEYS", 5)
    with ObservedCluster() as world:
        first = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        first.end()
        throw_garbage(world)
        for number in range(12):
            world.send(ROUTING_TABLE, f"foreign {number}", b"garbage")
        world.start("c2")
        world.wait_until(lambda: is_clean(world))
        assert set(world.owners().values()) == {"n1"}
        assert len(table_repairs(world)) == 3
        assert max(removed_at_once(world)) == 5
        assert_log_is_whole(world)


def test_a_term_opened_without_republishing_is_repaired_beside_a_writer_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic was made again and has no marker of the leader's; a foreign writer never lets it come to rest."""
    monkeypatch.setattr(publisher, "_MOST_FOREIGN_KEYS", 5)
    monkeypatch.setattr(table_watch, "STALL_LIMIT_MS", 300)
    with ObservedCluster() as world:
        first = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        first.end()
        world.broker.create_topic(world.cluster.topic(ROUTING_TABLE))
        for number in range(12):
            world.send(ROUTING_TABLE, f"foreign {number}", b"garbage")

        def is_repaired_beside_the_writer() -> bool:
            world.send(ROUTING_TABLE, "foreign 0", b"garbage")
            return bool(table_repairs(world))

        world.start("c2")
        world.wait_until(is_repaired_beside_the_writer)
        assert len({decision.term for decision in world.decisions()}) == 2


def test_a_first_leader_begins_among_more_foreign_rows_than_one_transaction_can_remove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first marker counts its own rows alone, so that no reader takes the foreign ones for rows of the table."""
    monkeypatch.setattr(publisher, "_MOST_FOREIGN_KEYS", 5)
    with ObservedCluster() as world:
        for number in range(8):
            world.send(ROUTING_TABLE, f"foreign {number}", b"garbage")
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: is_clean(world))
        assert max(removed_at_once(world)) == 5


def test_a_first_leader_finds_garbage_in_its_table() -> None:
    """Somebody wrote there before the cluster had a log; what nobody committed is no row of its table."""
    with ObservedCluster() as world:
        throw_garbage(world)
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert_table_is_clean(world)


def test_a_forged_marker_of_the_log_ends_the_leader_with_what_to_do() -> None:
    """No leader wrote it, and readers would follow it: only people can keep its writer out."""
    with ObservedCluster() as world:
        leader = world.start("c1")
        world.wait_until(world.table)
        marker = decode_row(MARKER_KEY.encode(), world.records(ROUTING_TABLE)[-1].value or b"")
        assert isinstance(marker, EpochMarker)
        world.send(ROUTING_TABLE, MARKER_KEY, encode_row(replace(marker, epoch=Epoch(99))))
        poll_until(lambda: not leader.alive)
        assert isinstance(leader.failure, LogContinuityError)
        assert "'controlplane topics apply'" in str(leader.failure)


def throw_garbage(world: ObservedCluster) -> None:
    """Write what no leader writes into the table's topic."""
    writer = MemoryEventWriter(world.cluster, world.broker)
    for key, value in (
        (b"main/slot/0", b"no avro"),
        (b"main/slot/1", encode_row(Slot(1, "intruder", (), Epoch(1)))),
        (b"main/node/intruder", b""),
        (b"main/table/settings", None),
        (b"\xff\x00", b"\x00" * 100),
        (b"main/epoch/marker", b"nonsense"),
    ):
        writer.send(OutgoingRecord(ROUTING_TABLE, key, value, 0))


def throw_row(world: ObservedCluster) -> None:
    """Write a row of a kind that no leader knows."""
    record = OutgoingRecord(ROUTING_TABLE, b"main/ring/1", b"garbage", 0)
    MemoryEventWriter(world.cluster, world.broker).send(record)


def table_repairs(world: ObservedCluster) -> list[Decision]:
    """The decisions that did nothing but write the table again."""
    return [
        decision
        for decision in world.decisions()
        if not decision.events and decision.causes[0].kind is CauseKind.TABLE_REPUBLISHED
    ]


def removed_at_once(world: ObservedCluster) -> list[int]:
    """How many foreign rows each epoch removed."""
    counts = [0]
    for record in world.records(ROUTING_TABLE):
        if record.key == MARKER_KEY.encode():
            counts.append(0)
        elif record.value is None and not (record.key or b"").startswith(b"main/"):
            counts[-1] += 1
    return counts


def has_repaired(world: ObservedCluster, times: int) -> bool:
    """Whether the table was repaired so often."""
    return len(table_repairs(world)) == times


def is_clean(world: ObservedCluster) -> bool:
    """Whether the topic holds the rows of the last table and no other."""
    live = {record.key: record.value for record in world.records(ROUTING_TABLE)}
    table = world.table()
    held = {key for key, value in live.items() if value is not None and key != MARKER_KEY.encode()}
    return table is not None and held == {key.encode() for key in rows_in(table)}


def assert_table_is_clean(world: ObservedCluster) -> None:
    """The topic holds the rows of the last table and no other."""
    world.wait_until(lambda: is_clean(world))


def rows_in(table: RoutingTable) -> set[str]:
    """The keys of a table's rows."""
    rows: list[TableRow] = [table.settings, *table.slots, *table.nodes.values(), *table.bundles.values()]
    return {key_of(row) for row in rows}
