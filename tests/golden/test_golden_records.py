"""Frozen bytes: what was once written stays readable, and what is written now stays what it is."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.codec.inputs import decode_input
from controlplane.codec.needed_level import needed_level
from controlplane.codec.schema_store import default_store
from controlplane.core.log.decision import Decision
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from tests.golden.frozen import DAMAGED_FILE, RECORDS, decode_frozen, encode, plain, read_json, schema_of
from tests.golden.rewrite import FrozenError, is_frozen, merged
from tests.golden.samples import SAMPLES, Sample

FILES = sorted(path for path in RECORDS.glob("*.json") if path != DAMAGED_FILE)
CASES = [(path, case) for path in FILES for case in read_json(path)]
CURRENT = {str(default_store().current(name).id) for name in default_store().names()}
SAMPLED = {(schema_of(encode(each.value, each.max_part_bytes)), each.name) for each in SAMPLES}
WRITTEN = {schema_id for schema_id, _ in SAMPLED}
DAMAGED = read_json(DAMAGED_FILE)


def _name(parameter: object) -> str:
    return parameter.stem if isinstance(parameter, Path) else str(parameter["name"])  # type: ignore[index]  # JSON


def _holds(value: object, frozen: object) -> bool:
    """Whether everything frozen is in the value; the value may have fields that are newer."""
    if isinstance(frozen, dict) and isinstance(value, dict):
        return all(key in value and _holds(value[key], frozen[key]) for key in frozen)
    if isinstance(frozen, list) and isinstance(value, list):
        return len(value) == len(frozen) and all(map(_holds, value, frozen))
    return value == frozen


@pytest.mark.parametrize(("path", "case"), CASES, ids=_name)
def test_frozen_bytes_are_read(path: Path, case: dict[str, Any]) -> None:
    """Records of every schema version stay in topics for weeks, decisions for ever."""
    value = plain(decode_frozen(case["records"]))
    assert _holds(value, case["value"])
    if path.stem in CURRENT:
        assert value == case["value"]


@pytest.mark.parametrize(("path", "case"), [each for each in CASES if each[0].stem in WRITTEN], ids=_name)
def test_values_are_written_as_frozen(path: Path, case: dict[str, Any]) -> None:
    """Equal values give equal bytes in every version of the code: table digests and other readers rest on it."""
    records = [bytes.fromhex(record) for record in case["records"]]
    assert encode(decode_frozen(case["records"]), case["max_part_bytes"]) == records


def test_every_schema_and_every_sample_is_frozen() -> None:
    """A schema without frozen bytes could change unseen; ``python -m tests.golden.rewrite`` adds what is missing."""
    frozen = {(path.stem, case["name"]) for path, case in CASES}
    assert frozen >= SAMPLED, "run python -m tests.golden.rewrite: these samples are not frozen"
    assert WRITTEN >= CURRENT, f"add samples to tests/golden/samples/: {sorted(CURRENT - WRITTEN)} writes none"
    unfrozen = {path.stem for path in FILES} ^ {str(schema.id) for schema in default_store().all()}
    assert unfrozen == set(), "tests/golden/records/ and schemas/ differ: these schemas are in one of them only"


DECISIONS = [each for each in SAMPLES if isinstance(each.value, Decision)]


@pytest.mark.parametrize("sample", DECISIONS, ids=lambda each: each.name)
def test_a_sample_is_a_decision_that_a_leader_could_commit(sample: Sample) -> None:
    """An event of a later level moves the whole sample to a later schema, and the older one is no longer tested."""
    assert isinstance(sample.value, Decision)
    needed = needed_level(sample.value)
    assert needed <= sample.value.feature_level, (
        f"{sample.name!r} holds something of level {needed}: use another sample"
    )


@pytest.mark.parametrize("case", DAMAGED, ids=_name)
def test_a_damaged_record_is_refused_for_the_frozen_reason(case: dict[str, Any]) -> None:
    """Reasons are metric labels and are looked for in dead letters: they do not change either."""
    raw = RawRecord(case["topic"], 0, 0, 0, case["key"].encode(), bytes.fromhex(case["value"]))
    with pytest.raises(InvalidInputError) as caught:
        decode_input(case["topic"], raw)
    assert caught.value.reason == case["reason"]


def test_new_cases_are_added_and_frozen_ones_never_changed() -> None:
    """The tool that writes the golden files must not be a way to paper over a change."""
    frozen = [{"name": "a", "records": ["00"]}]
    added = {"name": "b", "records": ["01"]}
    assert merged(frozen, [added, *frozen]) == [*frozen, added]
    with pytest.raises(FrozenError, match="a"):
        merged(frozen, [{"name": "a", "records": ["02"]}])


def test_a_damaged_record_follows_the_code_until_its_schema_is_released() -> None:
    """A schema that still changes gets another fingerprint, and the record would be refused for that alone."""
    (step,) = (bytes.fromhex(case["value"]) for case in DAMAGED if case["name"] == "falling bounds")
    assert not is_frozen(step, {"Heartbeat.v1.avsc"})
    assert is_frozen(step, {"Heartbeat.v2.avsc"})
    assert is_frozen(b"no Avro", {})
