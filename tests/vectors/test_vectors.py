"""The vectors are what our code says, and our own readers pass them: a reader that passes them agrees with us."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.framing import default_framing
from controlplane.codec.schema_store import default_store
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.state import State
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.errors import StopError
from controlplane.inspection.readers import read_decisions
from tests.golden.rewrite import FrozenError
from tests.helpers.sources import source_of
from tests.vectors import rewrite
from tests.vectors.hash_cases import hash_cases
from tests.vectors.reading import ScriptedReader, decision_reader, raw
from tests.vectors.record_cases import avro_json


def cases(name: str) -> list[Any]:
    """A parameter for each case of a file, named."""
    return [pytest.param(case, id=case["name"]) for case in rewrite.read(name)]


@pytest.mark.parametrize("name", rewrite.MAKERS)
def test_the_files_are_what_the_code_says(name: str) -> None:
    """A difference is a changed protocol, or a case that was added."""
    is_same = (rewrite.FOLDER / f"{name}.json").read_text("utf-8") == rewrite.text_of(rewrite.made(name))
    assert is_same, f"schemas/vectors/{name}.json differs: run python -m tests.vectors.rewrite, and read the difference"


def test_a_hash_that_changes_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client would route that key elsewhere: no tool may paper over it."""
    changed = hash_cases()
    changed[0]["slots"]["crc32c"]["256"] += 1
    monkeypatch.setitem(rewrite.MAKERS, "hashes", lambda: changed)
    with pytest.raises(FrozenError, match="empty"):
        rewrite.made("hashes")


@pytest.mark.parametrize(("key", "slot"), [("a", 208), ("user-3", 165), ("键", 150), ("", 0), ("user-17", 185)])
def test_known_slots_are_among_the_vectors(key: str, slot: int) -> None:
    """Answers that were found by somebody else's code, so the vectors are not only our own echo."""
    (case,) = (case for case in rewrite.read("hashes") if case["key"] == key)
    assert case["slots"]["crc32c"]["256"] == slot


@pytest.mark.parametrize("case", cases("hashes"))
def test_slots_by_the_words_of_the_page(case: Mapping[str, Any]) -> None:
    """H3 and H4 taken literally, from the checksums alone."""
    prefix = int.from_bytes(bytes.fromhex(case["md5"])[:4], "little", signed=True)
    for count, slot in case["slots"]["crc32c"].items():
        assert abs(case["crc32c"]) & (int(count) - 1) == slot
    for count, slot in case["slots"]["md5"].items():
        assert abs(prefix) % int(count) == slot


@pytest.mark.parametrize("case", cases("records"))
def test_records_are_read(case: Mapping[str, Any]) -> None:
    """The framed bytes name their schema and hold what the case says."""
    value = base64.b64decode(case["value"])
    assert str(default_framing().unframe(value)[0].id) == case["schema"]
    assert avro_json(value) == case["json"]


def test_every_schema_version_is_among_the_records() -> None:
    """A version without a record could be forgotten by a reader."""
    there = {case["schema"] for case in rewrite.read("records")}
    assert there == {str(each.id) for each in default_store().all()}, "run python -m tests.vectors.rewrite"


@pytest.mark.parametrize("case", cases("table_digests"))
def test_table_digests(case: Mapping[str, Any]) -> None:
    """The sum does not depend on the order of the rows."""
    digest = 0
    for row in reversed(case["rows"]):
        share = row_hash(raw(row["key"]) or b"", raw(row["value"]) or b"")
        assert format_digest(share) == row["share"]
        digest = add_hashes(digest, share)
    assert (len(case["rows"]), format_digest(digest)) == (case["row_count"], case["digest"])


@pytest.mark.parametrize("case", cases("decision_digests"))
def test_decision_digests(case: Mapping[str, Any]) -> None:
    """Parts joined, canonical form, digest."""
    assembler = DecisionAssembler()
    decision = [assembler.add(base64.b64decode(part)) for part in case["values"]][-1]
    assert decision is not None
    assert canonical_bytes(decision).decode() == case["canonical"]
    assert decision.digest() == case["digest"]


@pytest.mark.parametrize("case", cases("decision_logs"))
def test_decision_logs(case: Mapping[str, Any]) -> None:
    """A whole log is followed to its end, and an altered one to the place where it was altered."""
    state, found, outcome, reason = State(), [], "whole", ""
    try:
        for logged in read_decisions(source_of(decision_reader(case["records"]))):
            state = apply_decision(state, logged.decision)
            found.append({name: getattr(state, name) for name in ("seq", "term", "epoch")})
            found[-1]["digest"] = state.last_digest
    except StopError as error:
        outcome, reason = "refused", str(error)
    assert {"outcome": outcome, "decisions": found} == case["expected"], reason


@pytest.mark.parametrize("script", cases("reader_scripts"))
def test_reader_scripts(script: Mapping[str, Any]) -> None:
    """What is shown, what is routed by, and how each reading ends."""
    reader = ScriptedReader()
    for number, step in enumerate(script["steps"]):
        if step["reader"] == "new":
            reader = ScriptedReader(step.get("log_id", ""))
        expected = {**step["expected"]}
        lookups = expected.pop("lookups", ())
        records = [script["records"][place] for place in step["topic"]]
        came = reader.read(records, step["end_offset"], step.get("delivered"))
        assert {name: came[name] for name in expected} == expected, f"step {number}"
        assert [reader.look_up(lookup) for lookup in lookups] == list(lookups), f"step {number}"
