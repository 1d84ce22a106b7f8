"""No version of a record is written below its feature level: readers have to have had the time to learn it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from controlplane.codec import table
from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import check_schema_level, encode_decision
from controlplane.codec.framing import Framing, default_framing
from controlplane.codec.needed_level import needed_level
from controlplane.codec.schema_levels import SCHEMA_LEVELS, version_at
from controlplane.codec.schema_store import SchemaStore, SchemaVersion, default_store, parse_schema_text
from controlplane.codec.table import ROW_TYPES, encode_row
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import EVENT_TYPES, Event
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import later_defaults, later_fields_in_use, later_levels, to_canonical
from controlplane.core.values.events import DECLARED
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import InvalidInputError, InvariantViolationError
from tests.golden.samples import SAMPLES
from tests.helpers.log_values import records_within
from tests.helpers.published_world import PublishedWorld
from tests.helpers.world import World

GATED = {Decision.__name__, *(kind.__name__ for kind in ROW_TYPES)}
SLOT_2 = SchemaVersion("Slot", 2)


def schema_of(value: bytes) -> SchemaVersion:
    """Which schema wrote a record."""
    return default_framing().unframe(value)[0].id


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Framing:
    """A build that also has a second version of the slot's row, from the newest feature level on."""
    slot: Any = json.loads(default_store().current("Slot").text)
    slot["fields"].append({"name": "temperature", "type": "long", "default": 0})
    built = Framing(SchemaStore([*default_store().all(), parse_schema_text(json.dumps(slot), SLOT_2)]))
    monkeypatch.setattr(table, "default_framing", lambda: built)
    is_slot_2 = {("Slot", FEATURE_LEVEL): SLOT_2.version}
    monkeypatch.setattr(table, "version_at", lambda *key: is_slot_2.get(key) or version_at(*key))
    return built


def test_every_version_that_readers_of_log_and_table_meet_has_its_level() -> None:
    """A schema whose level nobody named would never be written, and one without a file could not be."""
    assert {each.id for each in default_store().all() if each.name in GATED} == set(SCHEMA_LEVELS)
    assert set(SCHEMA_LEVELS.values()) <= set(range(1, FEATURE_LEVEL + 1))
    for name in GATED:
        levels = [SCHEMA_LEVELS[each] for each in sorted(SCHEMA_LEVELS) if each.name == name]
        assert levels == sorted(levels)


@pytest.mark.parametrize("level", range(1, FEATURE_LEVEL + 1))
def test_nothing_is_written_above_the_level_of_the_log(level: int) -> None:
    """Whole decisions with all their rows, as a leader publishes them."""
    world = World(first_feature_level=level)
    world.admit("n1", "n2")
    world.join("n3", process_id="p")
    world.intent("a", "create_namespace", namespace="kv")
    world.run(2_000, ("n1",))
    written = {schema_of(value) for decision in world.decisions for value in encode_decision(decision)}
    rows = [each.value for each in SAMPLES if isinstance(each.value, ROW_TYPES)]
    known = [
        row
        for row in rows
        if SCHEMA_LEVELS[SchemaVersion(type(row).__name__, 1)] <= level and needed_level(row) <= level
    ]
    written |= {schema_of(encode_row(row, level)) for row in known}
    assert {each for each in written if SCHEMA_LEVELS[each] > level} == set()
    assert max(each.version for each in written if each.name == "Decision") == version_at("Decision", level)


def test_a_new_version_of_a_row_waits_for_its_level(newer: Framing) -> None:
    """The release that brings it writes the old one, until an operator raises the level."""
    slot = next(each.value for each in SAMPLES if isinstance(each.value, Slot))
    assert newer.unframe(encode_row(slot, FEATURE_LEVEL - 1))[0].id == SchemaVersion("Slot", 1)
    assert newer.unframe(encode_row(slot, FEATURE_LEVEL))[0].id == SLOT_2
    with pytest.raises(InvariantViolationError, match="no version of Slot"):
        encode_row(slot, 0)


@pytest.mark.usefixtures("newer")
def test_a_leader_publishes_at_the_level_of_its_log() -> None:
    """Although its own build could write more."""
    cluster = ClusterConfig("c")
    world = PublishedWorld(cluster, first_feature_level=FEATURE_LEVEL - 1)
    world.admit("n1")
    reader = world.reader()
    reader.assign({TopicPartition(ROUTING_TABLE, 0): 0})
    values = [record.value for record in reader.poll(10_000, 0).records if record.value is not None]
    assert {schema_of(value) for value in values} >= {SchemaVersion("Slot", 1), SchemaVersion("EpochMarker", 1)}


def test_a_leader_refuses_to_write_a_decision_above_its_level() -> None:
    """It would stop readers that the level promises to serve."""
    samples = [each.value for each in SAMPLES if isinstance(each.value, Decision)]
    newest = next(each for each in samples if schema_of(encode_decision(each)[0]).version == 2)
    with pytest.raises(InvariantViolationError, match=r"feature level 1 needs schema Decision\.v2"):
        check_schema_level(replace(newest, feature_level=1))
    check_schema_level(replace(newest, feature_level=2))


LATER_FIELDS = [(kind, name) for kind in records_within(Decision) for name in later_levels(kind)]
LATER_EVENTS = [kind for kind in EVENT_TYPES if DECLARED[kind].since_level > 1]
SAMPLED = [each.value for each in SAMPLES if isinstance(each.value, Decision)]


def holding(decision: Decision, event: Event) -> Decision:
    """A decision with this event alone."""
    return replace(decision, events=(event,), certificate=None)


def uses_within(value: Any) -> set[tuple[type, str]]:  # noqa: ANN401 - any value of the log
    """The later fields that a value and the records in its fields use."""
    if isinstance(value, tuple):
        return set().union(*map(uses_within, value))
    found = {(type(value), name) for name in later_fields_in_use(value)}
    return found.union(*(uses_within(getattr(value, name)) for name in getattr(value, "__dataclass_fields__", ())))


def check_refused_below(decision: Decision, level: int) -> None:
    """It needs exactly this level, and no leader writes it below."""
    assert needed_level(decision) == level
    check_schema_level(replace(decision, feature_level=level))
    with pytest.raises(InvariantViolationError, match=f"feature level {level - 1} needs schema"):
        check_schema_level(replace(decision, feature_level=level - 1))


@pytest.mark.parametrize(("kind", "name"), LATER_FIELDS, ids=lambda each: getattr(each, "__name__", each))
def test_a_later_field_is_refused_below_its_level(kind: type, name: str) -> None:
    """Readers of that level would not see it, and compute another digest."""
    carriers = [
        holding(each, event) for each in SAMPLED for event in each.events if uses_within(event) == {(kind, name)}
    ]
    assert carriers, f"add an event that uses {kind.__name__}.{name} and no other later field to tests/golden/samples/"
    for carrier in carriers:
        check_refused_below(carrier, later_levels(kind)[name])


@pytest.mark.parametrize("kind", LATER_EVENTS, ids=lambda kind: kind.__name__)
def test_a_later_event_is_refused_below_its_level(kind: type[Event]) -> None:
    """Readers of that level would stop at it."""
    carriers = [holding(each, event) for each in SAMPLED for event in each.events if isinstance(event, kind)]
    assert carriers, f"add a {kind.__name__} to tests/golden/samples/"
    for carrier in carriers:
        check_refused_below(carrier, DECLARED[kind].since_level)


def test_a_field_that_the_schema_lacks_is_an_error() -> None:
    """Written in too old a version it would be dropped, and the log would not say what its leader decided."""
    newest = next(each for each in SAMPLED if uses_within(each.events))
    datum = {"part": 0, "part_count": 1, "continues": False, **to_datum(newest)}
    with pytest.raises(InvalidInputError, match=r"Decision\.v1 cannot hold the value"):
        default_framing().encode("Decision", datum, 1)


@pytest.mark.parametrize(("kind", "name"), LATER_FIELDS, ids=lambda each: getattr(each, "__name__", each))
def test_a_later_field_has_the_default_of_its_schema(kind: type, name: str) -> None:
    """Where it has its default, it is left out when it is written, and the schema says what stands there instead."""
    fields = fields_of(json.loads(default_store().current("Decision").text), kind.__name__)
    (field,) = [each for each in fields if each["name"] == name]
    assert field["default"] == to_canonical(later_defaults(kind)[name])


def fields_of(schema: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    """The fields of the record of this name within a schema."""
    if isinstance(schema, list):
        return [field for each in schema for field in fields_of(each, name)]
    if not isinstance(schema, dict):
        return []
    if schema.get("name") == name and "fields" in schema:
        return list(schema["fields"])
    return [field for each in schema.values() for field in fields_of(each, name)]
