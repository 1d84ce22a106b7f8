"""No version of a record is written below its feature level: readers have to have had the time to learn it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from controlplane.codec import table
from controlplane.codec.decisions import check_schema_level, encode_decision
from controlplane.codec.framing import Framing, default_framing
from controlplane.codec.schema_levels import SCHEMA_LEVELS, version_at
from controlplane.codec.schema_store import SchemaStore, SchemaVersion, default_store, parse_schema_text
from controlplane.codec.table import ROW_TYPES, encode_row
from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.decision import Decision
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import InvariantViolationError
from tests.golden.samples import SAMPLES
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
    world.intent("a", "create_namespace", namespace="kv")
    world.run(2_000, ("n1",))
    written = {schema_of(value) for decision in world.decisions for value in encode_decision(decision)}
    written |= {schema_of(encode_row(each.value, level)) for each in SAMPLES if isinstance(each.value, ROW_TYPES)}
    assert {each for each in written if SCHEMA_LEVELS[each] > level} == set()
    assert max(each.version for each in written if each.name == "Decision") == level


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
