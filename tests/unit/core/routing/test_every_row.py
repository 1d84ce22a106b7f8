"""Every kind of rows, walked through all that it has to pass; what is missing of a new one is named here.

A kind is declared in its subject's rows.py. Nothing is listed by hand here: a kind that is added to the union of rows,
or to the kinds, is asked for at each of these places.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from controlplane.codec.framing import default_framing
from controlplane.codec.needed_level import needed_level
from controlplane.codec.schema_store import SchemaVersion, default_store
from controlplane.codec.table import decode_row, encode_row
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.apply import apply
from controlplane.core.log.events import EVENT_TYPES
from controlplane.core.log.row_changes import changed_rows, rows_of
from controlplane.core.log.state import State
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.routing.row_hashes import RowHashes
from controlplane.core.routing.rows import (
    KINDS,
    MARKER_KEY,
    ROW_KINDS,
    EpochMarker,
    TableRow,
    UnreadableRow,
    key_of,
    kind_of,
    split_key,
)
from controlplane.core.values.digests import format_digest, row_hash
from controlplane.core.values.events import DECLARED
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.values.image import Image
from controlplane.core.values.row_kind import TABLE_ID, AnyRowKind, RowKind
from controlplane.errors import InvariantViolationError
from controlplane.inspection.past_states import table_of
from tests.golden.frozen import RECORDS
from tests.golden.samples import SAMPLES
from tests.helpers.shown_rows import shown_rows
from tests.helpers.tour import tour

CORE = Path(__file__).parents[4] / "controlplane" / "core"
EVERY_KIND = pytest.mark.parametrize("kind", ROW_KINDS, ids=lambda kind: kind.name)
NEWER = UnreadableRow("a newer version wrote it")
POOL = b"main/pool/p1"


def test_every_class_of_rows_is_of_one_kind() -> None:
    """A class in ``TableRow`` without a declaration in ``ROW_KINDS`` would have no key."""
    declared, listed = {kind.record for kind in ROW_KINDS}, set(get_args(TableRow))
    names = sorted(kind.__name__ for kind in declared ^ listed)
    assert declared == listed, f"only in one of TableRow and ROW_KINDS, controlplane/core/routing/rows.py: {names}"
    assert len(KINDS) == len(ROW_KINDS)
    assert split_key(MARKER_KEY)[0] not in KINDS


@pytest.mark.parametrize("path", sorted(CORE.glob("*/rows.py")), ids=lambda path: path.parent.name)
def test_every_declaration_is_listed(path: Path) -> None:
    """A kind that a subject declares and ``ROW_KINDS`` lacks would never be written."""
    module = import_module(f"controlplane.core.{path.parent.name}.rows")
    forgotten = {name for name, each in vars(module).items() if isinstance(each, RowKind) and each not in ROW_KINDS}
    assert forgotten == set(), f"add them to ROW_KINDS in controlplane/core/routing/rows.py: {sorted(forgotten)}"


@EVERY_KIND
def test_its_declaration_names_what_there_is(kind: AnyRowKind) -> None:
    """A name that keys can carry, levels that a log can have, an image of the state, and events of the log."""
    assert split_key(f"{TABLE_ID}/{kind.name}/x") == (kind.name, "x")
    assert list(kind.levels) == sorted(kind.levels)
    assert set(kind.levels) <= set(range(1, FEATURE_LEVEL + 1))
    assert issubclass(kind.image, Image)
    assert kind.events
    assert set(kind.events) <= set(EVENT_TYPES)


@EVERY_KIND
def test_it_is_not_written_before_its_events(kind: AnyRowKind) -> None:
    """Readers below the level of its first event do not know such a row."""
    since = min(DECLARED[each].since_level for each in kind.events)
    assert kind.levels[0] >= since, f"levels of {kind.name} begin below level {since}, that of its first event"


@EVERY_KIND
def test_its_keys_lead_back_to_its_rows(kind: AnyRowKind) -> None:
    """Key and identifier are one another's inverse."""
    for row in rows_of_kind(kind):
        key = key_of(row)
        assert kind_of(row) is kind
        name, text = split_key(key)
        assert name == kind.name
        assert kind.id_in_key(text) == kind.id_of(row)
        assert kind.key(kind.id_of(row)) == key


@EVERY_KIND
def test_it_is_written_and_read(kind: AnyRowKind) -> None:
    """In every version of its schema that can hold it, from the level on that it declares; not below it."""
    for row in rows_of_kind(kind):
        for version, level in enumerate(kind.levels, start=1):
            if level < needed_level(row):
                continue
            value = encode_row(row, level)
            assert default_framing().unframe(value)[0].id.version >= version
            assert decode_row(key_of(row).encode(), value) == row
        with pytest.raises(InvariantViolationError, match="no version"):
            encode_row(row, kind.levels[0] - 1)


@EVERY_KIND
def test_its_bytes_are_frozen(kind: AnyRowKind) -> None:
    """Every version of its schema has a file and frozen records: without them a change would break readers unseen."""
    name = kind.record.__name__
    samples = [each for each in SAMPLES if isinstance(each.value, kind.record)]
    assert samples, f"add a {name} to tests/golden/samples/ and rewrite the records"
    for version in range(1, len(kind.levels) + 1):
        schema = default_store().by_version(SchemaVersion(name, version))
        assert schema is not None, f"schemas/{name}.v{version}.avsc is missing"
        assert (RECORDS / f"{name}.v{version}.json").exists(), f"no frozen records of {schema.id}"


@EVERY_KIND
def test_equal_rows_are_equal_bytes(kind: AnyRowKind) -> None:
    """The digest is over bytes, and Avro does not order the entries of a map."""
    name = kind.record.__name__
    assert name in default_store().names(), f"schemas/{name}.v1.avsc is missing"
    schema = json.loads(default_store().current(name).text)
    assert "map" not in {node["type"] for node in nodes_of(schema) if isinstance(node["type"], str)}


@EVERY_KIND
def test_what_changes_it_is_published(kind: AnyRowKind) -> None:
    """Some event of the tour changes such a row; tests/unit/core/log/test_every_event.py misses no change of one."""
    state = State()
    changed: set[str] = set()
    for decision in tour().decisions:
        for event in decision.events:
            after = apply(state, event)
            changed |= changed_rows(state, after, [event]).keys()
            state = after
    assert kind.name in {split_key(key)[0] for key in changed}, f"no input of tests/helpers/tour.py changes {kind.name}"


@EVERY_KIND
def test_a_reader_shows_it_and_a_tombstone_removes_it(kind: AnyRowKind) -> None:
    """``RoutingTable`` has a field for it, which is built from the rows decoded so far."""
    for row in rows_of_kind(kind):
        topic = Topic(table_rows())
        table = topic.commit()
        assert table is not None
        assert row in shown_rows(table), f"RoutingTable has no field that shows a {kind.record.__name__}"
        topic.put(key_of(row).encode(), None, None)
        if kind.image is kind_of(table.settings).image:
            assert topic.commit() is None, "a table without settings was shown"
            continue
        after = topic.commit()
        assert after is not None
        assert row not in shown_rows(after), f"TableReplica._table keeps a removed {kind.record.__name__}"
        assert row in shown_rows(table)


@EVERY_KIND
def test_a_row_of_it_that_cannot_be_read_is_told(kind: AnyRowKind) -> None:
    """It counts in the digest, and the table says which keys it lacks; without settings there is no table."""
    row = rows_of_kind(kind)[0]
    topic = Topic(table_rows())
    topic.put(key_of(row).encode(), b"newer", NEWER)
    table = topic.commit()
    if kind.image is kind_of(table_of(tour().state).settings).image:
        assert table is None
        assert topic.replica.at_end() is ReplicaStanding.UNCONFIRMED
    else:
        assert table is not None
        assert dict(table.unreadable) == {key_of(row): NEWER.problem}
        assert row not in shown_rows(table)


@EVERY_KIND
def test_a_row_of_it_under_another_key_is_not_taken(kind: AnyRowKind) -> None:
    """A key of its kind that is none of its own."""
    row = rows_of_kind(kind)[0]
    key = f"{TABLE_ID}/{kind.name}/nonsense"
    topic = Topic(table_rows())
    topic.put(key.encode(), encode_row(row), row)
    table = topic.commit()
    assert table is not None
    assert table.unreadable.keys() == {key}


@EVERY_KIND
def test_the_table_of_a_past_state_has_it(kind: AnyRowKind) -> None:
    """What ``table show --at-epoch`` reads from the log is what readers saw."""
    then = table_of(tour().state)
    table = Topic(table_rows()).commit()
    assert table is not None
    assert then.digest == table.digest
    for row in rows_of_kind(kind):
        assert row in shown_rows(then), f"table_of in inspection/past_states.py shows no {kind.record.__name__}"


def test_a_kind_that_nobody_knows_is_passed_by() -> None:
    """It counts in the digest, and nothing is said to be unreadable."""
    topic = Topic(table_rows())
    topic.put(POOL, b"later", NEWER)
    table = topic.commit()
    assert table is not None
    assert table.unreadable == {}
    assert POOL.decode() in topic.replica.row_hashes
    assert set(shown_rows(table)) == set(table_rows().values())


class Topic:
    """A routing-table topic from which a replica reads at once, with the bytes that a leader writes."""

    def __init__(self, rows: Mapping[str, TableRow]) -> None:
        self.replica = TableReplica()
        self._hashes = RowHashes()
        self._epoch = 0
        for key, row in rows.items():
            self.put(key.encode(), encode_row(row), row)

    def put(self, key: bytes, value: bytes | None, row: TableRow | UnreadableRow | None) -> None:
        """Write one record; the digest is kept as the leader keeps it."""
        name = key.decode()
        hashes = self._hashes.drop([name] if name in self._hashes else [])
        self._hashes = hashes if value is None else hashes.put([(name, row_hash(key, value))])
        assert self.replica.fold(key, value, row) is None

    def commit(self) -> RoutingTable | None:
        """Write the marker of the next epoch; the table that the replica shows then."""
        self._epoch += 1
        digest = format_digest(self._hashes.digest)
        marker = EpochMarker(Term(1), Epoch(self._epoch), Seq(self._epoch), "log-1", len(self._hashes), "test", digest)
        return self.replica.fold(MARKER_KEY.encode(), encode_row(marker), marker)


@cache
def table_rows() -> Mapping[str, TableRow]:
    """The rows of the tour's last state."""
    return rows_of(tour().state)


def rows_of_kind(kind: AnyRowKind) -> list[TableRow]:
    """A few rows of a kind; the tour has to end with one."""
    found = [row for key, row in table_rows().items() if split_key(key)[0] == kind.name]
    assert found, f"the tour ends without a row of kind {kind.name}: see tests/helpers/tour.py"
    return found[:3]


def nodes_of(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Every part of a schema that has a type."""
    if isinstance(schema, list):
        for each in schema:
            yield from nodes_of(each)
    elif isinstance(schema, dict):
        if "type" in schema:
            yield schema
        for each in schema.values():
            yield from nodes_of(each)
