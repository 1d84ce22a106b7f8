"""The decision log's records: exact, in parts where needed, and never guessed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import CUT_LISTS, DecisionAssembler, decision_key, encode_decision
from controlplane.codec.framing import Framing, default_framing
from controlplane.codec.schema_store import SchemaStore, SchemaVersion, default_store, parse_schema_text
from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.events import EVENT_TYPES
from controlplane.core.membership.events import EvictionsResumed, NodeDraining
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import (
    ConfigurationError,
    InvalidInputError,
    LogContinuityError,
    StopError,
    UnsupportedFeatureLevelError,
)
from tests.helpers.log_values import DECISIONS

SLOTS = tuple(Slot(number, f"n{number % 7}", ("n8", "n9"), Epoch(3)) for number in range(300))
LARGE = Decision(
    seq=Seq(41),
    term=Term(3),
    epoch=Epoch(9),
    log_id="log",
    controller_id="c1",
    feature_level=FEATURE_LEVEL,
    decided_at_ms=1_000,
    causes=tuple(Cause(CauseKind.NODE_JOINED, f"n{number}", f"membership[0]@{number}") for number in range(40)),
    events=(
        NodeDraining("n1", 1, 5),
        SlotsAssigned(SLOTS),
        SlotsAssigned(SLOTS[:2]),
        SlotsAssigned(()),
        BundlesAssigned(()),
        EvictionsResumed("over"),
    ),
    positions={f"heartbeats[{number}]": number for number in range(60)},
    policy_fingerprint="f" * 16,
    certificate=Certificate(
        "minimal", 5, 4, 3, 2, {f"n{number}": number for number in range(50)}, {}, tuple(range(99))
    ),
    previous_digest="a" * 64,
    state_digest="b" * 64,
)


def _assemble(parts: list[bytes]) -> Decision:
    assembler = DecisionAssembler()
    results = [assembler.add(part) for part in parts]
    assert results[:-1] == [None] * (len(parts) - 1)
    whole = results[-1]
    assert whole is not None
    return whole


def _with(decision: Decision, **changed: object) -> bytes:
    datum: dict[str, Any] = {"part": 0, "part_count": 1, "continues": False, **to_datum(decision), **changed}
    return default_framing().encode("Decision", datum)


def _part(parts: list[bytes], number: int, **changed: object) -> bytes:
    _, datum = default_framing().decode(parts[number])
    return default_framing().encode("Decision", {**datum, **changed})


@given(DECISIONS)
def test_a_decision_comes_back_exactly(decision: Decision) -> None:
    """The digest chain is over the decision's canonical bytes: not one of them may change on the way."""
    parts = encode_decision(decision)
    assert len(parts) == 1
    assert canonical_bytes(_assemble(parts)) == canonical_bytes(decision)
    assert _assemble(parts) == decision


@given(DECISIONS, st.integers(700, 1_500))
def test_a_decision_in_parts_comes_back_exactly(decision: Decision, max_part_bytes: int) -> None:
    """However a decision is cut, joining gives the same decision, and no part is over the limit."""
    parts = encode_decision(decision, max_part_bytes)
    assert max(map(len, parts)) <= max_part_bytes
    assert canonical_bytes(_assemble(parts)) == canonical_bytes(decision)


@pytest.mark.parametrize("max_part_bytes", [600, 1_000, 5_000, 100_000])
def test_everything_long_in_a_decision_is_cut(max_part_bytes: int) -> None:
    """Causes, positions, prices, lost slots and the slots of one event can each outgrow a message."""
    parts = encode_decision(LARGE, max_part_bytes)
    assert (len(parts) == 1) == (max_part_bytes == 100_000)
    assert max(map(len, parts)) <= max_part_bytes
    assert _assemble(parts) == LARGE
    assert encode_decision(LARGE, max_part_bytes) == parts


def test_each_slot_stands_in_exactly_one_part() -> None:
    """A query over all parts counts every moved slot and every cause once."""
    data = [default_framing().decode(part)[1] for part in encode_decision(LARGE, 1_000)]
    events: list[Any] = [event for datum in data for event in datum["events"]]  # type: ignore[attr-defined]  # JSON-like
    slots = [
        slot["slot_id"] for name, record in events if name == "controlplane.SlotsAssigned" for slot in record["slots"]
    ]
    assert slots == [*range(300), 0, 1]
    assert [datum["part"] for datum in data] == list(range(len(data)))
    assert {datum["part_count"] for datum in data} == {len(data)}
    assert {datum["seq"] for datum in data} == {41}


def test_no_part_exceeds_the_limit_by_its_own_number() -> None:
    """A part's number and the count of parts are known last, and take more bytes from the 64th part on."""
    larger = replace(LARGE, events=(SlotsAssigned(SLOTS * 3),))
    for max_part_bytes in range(440, 470, 3):
        parts = encode_decision(larger, max_part_bytes)
        assert len(parts) > 64
        assert max(map(len, parts)) <= max_part_bytes


def test_an_item_that_fits_into_no_part_is_an_error() -> None:
    """A limit below a single row cannot be met by cutting: say what to change."""
    decision = replace(LARGE, events=(EvictionsResumed("x" * 2_000),))
    with pytest.raises(ConfigurationError, match="by itself"):
        encode_decision(decision, 1_000)


def test_the_lists_that_are_cut_exist() -> None:
    """The table of cut lists names real events and fields."""
    names = {kind.__name__: kind.__dataclass_fields__ for kind in EVENT_TYPES}
    assert all(field in names[event] for event, field in CUT_LISTS.items())


def test_the_key_is_the_number_in_decimal() -> None:
    """All parts of a decision share the key by which people look for it."""
    assert decision_key(Seq(41)) == b"41"


def test_a_higher_feature_level_stops_the_reader() -> None:
    """Events of a level that is not known here would be applied wrongly: stop and say so."""
    with pytest.raises(UnsupportedFeatureLevelError, match=f"needs feature level {FEATURE_LEVEL + 1}"):
        DecisionAssembler().add(_with(LARGE, feature_level=FEATURE_LEVEL + 1))


@pytest.mark.parametrize(
    "value",
    [
        b"\xc3\x01" + b"\x11" * 8,
        _with(LARGE, causes=[{"kind": "full_moon", "subject": "", "evidence": ""}]),
    ],
)
def test_what_a_newer_version_wrote_stops_the_reader(value: bytes) -> None:
    """An unknown schema or value in the log of decisions is never skipped: the state would be another one."""
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        DecisionAssembler().add(value)


def test_a_policy_that_contradicts_itself_stops_the_reader() -> None:
    """A newer version may allow what this one does not: it has to stop, not to adjust."""
    datum: Any = to_datum(LARGE)
    policy = {**to_datum(ClusterPolicy()), "slot_count": 3}
    datum["events"] = [("controlplane.ClusterCreated", {"log_id": "log", "policy": policy})]
    with pytest.raises(UnsupportedFeatureLevelError, match="power of two"):
        DecisionAssembler().add(_with(LARGE, **datum))


@pytest.mark.parametrize("value", [b"", b"{}", _with(LARGE)[:-1], _with(LARGE) + b"\x00", b"\xc3\x01", bytes(5), None])
@pytest.mark.parametrize("log_id", ["", LARGE.log_id])
def test_a_record_that_cannot_be_decoded_is_foreign(value: bytes | None, log_id: str) -> None:
    """It is refused by itself, and the next one is read: it claims nothing about any decision."""
    assembler = DecisionAssembler(log_id=log_id)
    with pytest.raises(InvalidInputError):
        assembler.add(value)
    assert assembler.add(encode_decision(LARGE)[0]) == LARGE


def test_another_record_in_the_log_is_foreign() -> None:
    """It is named by what it is."""
    tick = default_framing().encode("Tick", {"controller_id": "c", "sent_at_ms": 1})
    with pytest.raises(InvalidInputError, match="Tick"):
        DecisionAssembler().add(tick)


def test_a_decision_of_another_log_is_foreign_behind_ours_whatever_its_level() -> None:
    """Two clusters that write to one topic by mistake must not stop each other; the first decision names the log."""
    assembler = DecisionAssembler()
    assert assembler.add(encode_decision(LARGE)[0]) == LARGE
    for foreign in (_with(LARGE, log_id="another"), _with(LARGE, log_id="another", feature_level=FEATURE_LEVEL + 1)):
        with pytest.raises(InvalidInputError, match="'another', but this is log"):
            assembler.add(foreign)


@pytest.mark.parametrize("key", [None, b"", b"x", b"1", b"43"])
def test_an_unknown_schema_is_foreign_under_the_key_of_no_decision_to_come(key: bytes | None) -> None:
    """A newer leader writes its decisions under their numbers, and the next one has the next number."""
    assembler = DecisionAssembler(log_id=LARGE.log_id, next_seq=Seq(42))
    with pytest.raises(InvalidInputError, match="unknown_fingerprint"):
        assembler.add(b"\xc3\x01" + b"\x11" * 8, key)


def test_an_unknown_schema_under_the_key_of_the_next_decision_stops_the_reader() -> None:
    """To pass a newer leader's decision by, and to lead on from the one before, would undo it."""
    assembler = DecisionAssembler()
    assembler.add(encode_decision(LARGE)[0])
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        assembler.add(b"\xc3\x01" + b"\x11" * 8, decision_key(Seq(LARGE.seq + 1)))
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        DecisionAssembler(log_id=LARGE.log_id).add(b"\xc3\x01" + b"\x11" * 8, b"17")


def test_an_unknown_schema_before_the_first_decision_stops_only_under_its_key() -> None:
    """Anybody may write a record with an unknown fingerprint before a leader founds the log."""
    unknown = b"\xc3\x01" + b"\x11" * 8
    begun = DecisionAssembler(next_seq=Seq(1))
    for key in (None, b"7"):
        with pytest.raises(InvalidInputError, match="unknown_fingerprint"):
            begun.add(unknown, key)
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        begun.add(unknown, b"1")
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        DecisionAssembler().add(unknown, b"7")  # the beginning of the log is unknown


def test_foreign_records_between_the_parts_of_a_decision_are_passed_by() -> None:
    """A writer that is in no transaction can append between the records of one."""
    assembler, decision = DecisionAssembler(), None
    for part in encode_decision(LARGE, 2_000):
        for foreign in (b"garbage", _with(LARGE, log_id="another"), None):
            if assembler.log_id:
                with pytest.raises(InvalidInputError):
                    assembler.add(foreign)
        decision = assembler.add(part)
    assert decision == LARGE


@given(st.binary(max_size=120))
def test_arbitrary_bodies_are_foreign_or_stop_the_reader_or_are_decisions(body: bytes) -> None:
    """Whatever stands in the log, the reader understands it or has an error of its own for it."""
    try:
        DecisionAssembler().add(_with(LARGE)[:10] + body)
    except (StopError, InvalidInputError) as error:
        assert str(error)  # noqa: PT017 - both outcomes are right


def test_parts_have_to_be_complete_and_in_order() -> None:
    """A missing, repeated, swapped or foreign part would give a decision that nobody made."""
    parts = encode_decision(LARGE, 2_000)
    assert len(parts) > 3
    foreign = encode_decision(replace(LARGE, seq=Seq(42)), 2_000)
    for broken in (
        [parts[1]],
        [parts[0], parts[2]],
        [parts[0], parts[0]],
        [parts[0], foreign[1]],
        [parts[0], encode_decision(replace(LARGE, seq=Seq(42)))[0]],
        [parts[0], _part(parts, 1, part_count=len(parts) + 1)],
        [_part(parts, 0, part_count=0)],
        [_part(parts, 0, part=-1)],
    ):
        assembler = DecisionAssembler()
        for part in broken[:-1]:
            assert assembler.add(part) is None
        with pytest.raises(LogContinuityError):
            assembler.add(broken[-1])


def test_a_part_that_continues_nothing_stops_the_reader() -> None:
    """The rest of an event without its beginning, or of another kind, cannot be joined."""
    parts = encode_decision(LARGE, 2_000)
    continuing = next(number for number, part in enumerate(parts) if default_framing().decode(part)[1]["continues"])
    changes: tuple[dict[str, Any], ...] = (
        {"events": []},
        {"events": [("controlplane.EvictionsResumed", {"reason": "x"})]},
    )
    for changed in changes:
        assembler = DecisionAssembler()
        for part in parts[:continuing]:
            assembler.add(part)
        with pytest.raises(LogContinuityError, match="continues"):
            assembler.add(_part(parts, continuing, **changed))
    with pytest.raises(LogContinuityError, match="continues"):
        DecisionAssembler().add(_part(parts, 0, continues=True))


def test_the_assembler_goes_on_after_a_whole_decision() -> None:
    """One assembler reads the whole log."""
    assembler = DecisionAssembler()
    following = replace(LARGE, seq=Seq(42), events=())
    read = [assembler.add(part) for part in (*encode_decision(LARGE, 2_000), *encode_decision(following))]
    assert [decision for decision in read if decision] == [LARGE, following]


@given(DECISIONS, st.sampled_from([700, 100_000]))
def test_decisions_of_an_older_schema_are_read(decision: Decision, max_part_bytes: int) -> None:
    """The decision log is kept for ever: when events and fields are added, everything before stays what it was."""
    current: Any = json.loads(default_store().current("Decision").text)
    events = next(each for each in current["fields"] if each["name"] == "events")
    events["type"]["items"].insert(0, {"type": "record", "name": "Paused", "fields": []})
    current["fields"].append({"name": "paused", "type": {"type": "map", "values": "Paused"}, "default": {}})
    newer = parse_schema_text(json.dumps(current), SchemaVersion("Decision", 3))
    assembler = DecisionAssembler(Framing(SchemaStore([*default_store().all(), newer])))
    assert [assembler.add(part) for part in encode_decision(decision, max_part_bytes)][-1] == decision
