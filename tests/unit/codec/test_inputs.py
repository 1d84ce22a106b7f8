"""Input records: what a node, controller or operator may write, and the reason why everything else is refused."""

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import encode_decision
from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES, Framing, default_framing, framing_with
from controlplane.codec.input_checks import MAX_INCARNATION, MAX_NODE_ID_BYTES, REASONS, check_payload
from controlplane.codec.inputs import MAX_RECORD_BYTES, TOPIC_TYPES, decode_input, encode_input
from controlplane.codec.schema_store import SchemaStore, SchemaVersion, default_store, parse_schema_text
from controlplane.core.bundles.reports import (
    BundleLoad,
    BundleStatus,
    BundleStep,
    BundleStepReport,
    LoadReport,
    ResourceUsage,
)
from controlplane.core.intents.intent import Intent
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import ReleasedSlots, SlotGroup, SlotLoad, SlotSettings, SlotStatus
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Coordinates, Epoch, Seq
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from tests.golden.samples import SAMPLES
from tests.helpers.log_values import DECISIONS, INPUTS

TOPIC_OF = {kind: topic for topic, kinds in TOPIC_TYPES.items() for kind in kinds}

HEARTBEAT = Heartbeat("n1", 5, 1_000, Epoch(3), NodeRole.DATA)
SLOT = SlotStatus(7, 2, True, ReplicaStatus.HEALTHY, 0)
GROUP = SlotGroup(ReplicaStatus.HEALTHY, 0, (4, 1, 2, 3))
BUNDLE = BundleStatus("kv/0x0_0x1", ReplicaStatus.MIGRATING)
STEP = BundleStepReport("kv/0x0_0x1", 3, BundleStep.DIVIDED, (1, 0xFFFFFFFE))
TICK = Tick("c1", 1_000)
JOINED = NodeJoined("n1", 5, NodeRole.DATA, (Address("kv", "localhost", 4_000),), "z1", 1, 0, "1.0", 900)
LEAVING = NodeLeaving("n1", 5, "drained")
LEFT = NodeLeft("n1", 5, "stopped")
INTENT = Intent("i1", "create_namespace", "ada", {"namespace": "kv"})
USAGE = ResourceUsage(10.0, 100.0)
BUNDLE_LOAD = BundleLoad("kv/0x0_0x1", 1.0, 2.0, 3.0, 4.0, 5, 6, 7, 8)
SLOT_LOAD = SlotLoad(7, 1.0, 2.0, 3)
REPORT = LoadReport(
    "n1", 5, 1_000, USAGE, USAGE, USAGE, USAGE, USAGE, (), "1.0", 900, bundles=(BUNDLE_LOAD,), slots=(SLOT_LOAD,)
)
VALID: tuple[InputPayload, ...] = (HEARTBEAT, TICK, JOINED, LEAVING, LEFT, INTENT, REPORT)


def _key(payload: InputPayload) -> bytes:
    match payload:
        case Tick():
            return b"anything"
        case Intent(intent_id=intent_id):
            return intent_id.encode()
        case _:
            return payload.node_id.encode()


def _raw(topic: str, value: bytes | None, key: bytes | None = b"n1") -> RawRecord:
    return RawRecord(topic, 2, 17, 1_234, key, value)


def _encode_unchecked(payload: InputPayload) -> bytes:
    return default_framing().encode(type(payload).__name__, to_datum(payload))


def _with(load: BundleLoad, name: str, value: float) -> BundleLoad:
    changed: dict[str, Any] = {name: value}
    return load._replace(**changed)


def _refusal(topic: str, value: bytes | None, key: bytes | None = b"n1") -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        decode_input(topic, _raw(topic, value, key))
    assert caught.value.reason in REASONS
    return caught.value


@given(st.one_of(*INPUTS.values()))
@example(HEARTBEAT)
@example(REPORT)
def test_every_payload_comes_back_as_it_was_written(payload: InputPayload) -> None:
    """What a node says is what the core hears, with the place and the bytes of the record."""
    topic = TOPIC_OF[type(payload)]
    encoded = encode_input(payload)
    record = decode_input(topic, _raw(topic, encoded, _key(payload)))
    assert record.payload == payload
    assert type(record.payload) is type(payload)
    assert record.coordinates == Coordinates(topic, 2, 17, 1_234)
    assert record.raw == encoded


@given(st.sampled_from(sorted(TOPIC_TYPES)), st.binary(max_size=200), st.none() | st.binary(max_size=10))
def test_arbitrary_bytes_are_refused_and_nothing_else_happens(topic: str, value: bytes, key: bytes | None) -> None:
    """Anybody can produce to a topic: foreign bytes become a dead letter, never another exception."""
    _refusal(topic, value, key)


@given(st.sampled_from(VALID), st.binary(max_size=60))
def test_arbitrary_bodies_are_decoded_or_refused(payload: InputPayload, body: bytes) -> None:
    """A known header before noise is the hardest case for the Avro library: lengths, branches and texts are random."""
    topic = TOPIC_OF[type(payload)]
    _decode_or_refuse(topic, _encode_unchecked(payload)[:10] + body)


@given(st.data(), st.sampled_from(VALID))
def test_a_damaged_record_is_decoded_or_refused(data: st.DataObject, payload: InputPayload) -> None:
    """A flipped or lost byte may give another possible record or a refusal, never a crash of the loop."""
    topic = TOPIC_OF[type(payload)]
    encoded = bytearray(_encode_unchecked(payload))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(encoded)))
    _decode_or_refuse(topic, bytes(encoded))
    _decode_or_refuse(topic, bytes(encoded[:cut]))


def _decode_or_refuse(topic: str, value: bytes) -> None:
    try:
        decode_input(topic, _raw(topic, value))
    except InvalidInputError as error:
        assert error.reason in REASONS  # noqa: PT017 - both outcomes are right, but a reason has to be a known one


IMPOSSIBLE: list[tuple[str, str, Any]] = [
    ("empty_node_id", "node_id", HEARTBEAT._replace(node_id="")),
    ("empty_node_id", "node_id", replace(LEFT, node_id="")),
    ("long_node_id", "256 bytes", HEARTBEAT._replace(node_id="n" * 256)),
    ("long_node_id", "has 258 bytes, at most 255", replace(REPORT, node_id="ü" * 129)),
    ("invalid_incarnation", "incarnation is 0", HEARTBEAT._replace(incarnation=0)),
    ("invalid_incarnation", "incarnation is -4", replace(LEAVING, incarnation=-4)),
    ("invalid_incarnation", "9007199254740992", replace(JOINED, incarnation=MAX_INCARNATION + 1)),
    ("negative", "sent_at_ms is -1", HEARTBEAT._replace(sent_at_ms=-1)),
    ("negative", "table_epoch is -1", HEARTBEAT._replace(table_epoch=Epoch(-1))),
    ("negative", "slot_count is -1", HEARTBEAT._replace(slot_settings=SlotSettings(-1, 2, "crc32c"))),
    ("negative", "replica_count is -2", HEARTBEAT._replace(slot_settings=SlotSettings(8, -2, "crc32c"))),
    ("slot_out_of_range", "slot_id is -1", HEARTBEAT._replace(slot_statuses=(SLOT._replace(slot_id=-1),))),
    ("slot_out_of_range", "0 to 1048575", HEARTBEAT._replace(slot_statuses=(SLOT._replace(slot_id=1 << 20),))),
    (
        "slot_out_of_range",
        "0 to 6",
        HEARTBEAT._replace(slot_settings=SlotSettings(7, 2, "crc32c"), slot_statuses=(SLOT,)),
    ),
    ("duplicate_slot_status", "slot 7", HEARTBEAT._replace(slot_statuses=(SLOT, SLOT))),
    ("invalid_slot_runs", "even number", HEARTBEAT._replace(slot_groups=(GROUP._replace(runs=(1,)),))),
    ("invalid_slot_runs", "even number", HEARTBEAT._replace(slot_groups=(GROUP._replace(runs=()),))),
    ("invalid_slot_runs", "first 0 or more", HEARTBEAT._replace(slot_groups=(GROUP._replace(runs=(-1, 2)),))),
    ("invalid_slot_runs", "others 1 or more", HEARTBEAT._replace(slot_groups=(GROUP._replace(runs=(1, 2, 0, 1)),))),
    ("slot_out_of_range", "0 to 1048575", HEARTBEAT._replace(slot_groups=(GROUP._replace(runs=((1 << 20) - 1, 2)),))),
    ("duplicate_slot_status", "slot 4", HEARTBEAT._replace(slot_groups=(GROUP, GROUP._replace(runs=(2, 3, 1, 1))))),
    ("duplicate_slot_status", "slot 7", HEARTBEAT._replace(slot_statuses=(SLOT,), slot_groups=(GROUP,))),
    ("negative", "last_sync_ms is -1", HEARTBEAT._replace(slot_groups=(GROUP._replace(last_sync_ms=-1),))),
    ("negative", "leader_epoch is -1", HEARTBEAT._replace(slot_statuses=(SLOT._replace(leader_epoch=-1),))),
    ("negative", "last_sync_ms is -1", HEARTBEAT._replace(slot_statuses=(SLOT._replace(last_sync_ms=-1),))),
    ("empty_bundle_id", "bundle_id", HEARTBEAT._replace(bundle_statuses=(BUNDLE._replace(bundle_id=""),))),
    ("duplicate_bundle_status", "kv/0x0_0x1", HEARTBEAT._replace(bundle_statuses=(BUNDLE, BUNDLE))),
    ("invalid_slot_runs", "even number", HEARTBEAT._replace(released_slots=(ReleasedSlots(Epoch(1), (1,)),))),
    ("slot_out_of_range", "0 to 1048575", HEARTBEAT._replace(released_slots=(ReleasedSlots(Epoch(1), (1 << 20, 1)),))),
    ("negative", "release_epoch is -1", HEARTBEAT._replace(released_slots=(ReleasedSlots(Epoch(-1), (0, 1)),))),
    ("empty_bundle_id", "bundle_id", HEARTBEAT._replace(bundle_steps=(STEP._replace(bundle_id=""),))),
    ("duplicate_bundle_step", "kv/0x0_0x1", HEARTBEAT._replace(bundle_steps=(STEP, STEP._replace(version=4)))),
    *(
        ("invalid_bounds", str(list(bounds)), HEARTBEAT._replace(bundle_steps=(STEP._replace(bounds=bounds),)))
        for bounds in ((0,), ((1 << 32) - 1,), (1 << 32,), (-1, 1), (7, 7), (8, 7))
    ),
    ("empty_controller_id", "controller_id", TICK._replace(controller_id="")),
    ("negative", "sent_at_ms is -1", TICK._replace(sent_at_ms=-1)),
    ("invalid_weight", "weight is 0", replace(JOINED, weight=0)),
    ("invalid_weight", "weight is 1000001", replace(JOINED, weight=1_000_001)),
    ("negative", "capacity is -1", replace(JOINED, capacity=-1)),
    ("negative", "started_at_ms is -1", replace(JOINED, started_at_ms=-1)),
    ("empty_address", "Address.name", replace(JOINED, addresses=(Address("", "h", 1),))),
    ("empty_address", "Address.host", replace(JOINED, addresses=(Address("kv", "", 1),))),
    ("invalid_port", "is 0", replace(JOINED, addresses=(Address("kv", "h", 0),))),
    ("invalid_port", "is 65536", replace(REPORT, addresses=(Address("kv", "h", 65_536),))),
    ("duplicate_address", "'kv'", replace(JOINED, addresses=(Address("kv", "h", 1), Address("kv", "i", 2)))),
    ("empty_intent_id", "intent_id", replace(INTENT, intent_id="")),
    ("empty_kind", "kind", replace(INTENT, kind="")),
    ("negative", "sent_at_ms", replace(REPORT, sent_at_ms=-1)),
    ("negative", "started_at_ms", replace(REPORT, started_at_ms=-1)),
    ("negative", "cpu.usage is -1.0", replace(REPORT, cpu=ResourceUsage(-1.0, 100.0))),
    ("negative", "memory.limit is -1.0", replace(REPORT, memory=ResourceUsage(1.0, -1.0))),
    ("not_a_number", "direct_memory.usage is nan", replace(REPORT, direct_memory=ResourceUsage(float("nan"), 1.0))),
    ("not_a_number", "bandwidth_in.limit is inf", replace(REPORT, bandwidth_in=ResourceUsage(1.0, float("inf")))),
    ("not_a_number", "bandwidth_out.usage is -inf", replace(REPORT, bandwidth_out=ResourceUsage(-float("inf"), 1.0))),
    ("empty_bundle_id", "bundle_id", replace(REPORT, bundles=(BUNDLE_LOAD._replace(bundle_id=""),))),
    ("duplicate_bundle_load", "kv/0x0_0x1", replace(REPORT, bundles=(BUNDLE_LOAD, BUNDLE_LOAD))),
    ("duplicate_slot_load", "slot 7", replace(REPORT, slots=(SLOT_LOAD, SLOT_LOAD))),
    ("slot_out_of_range", "slot_id is 1048576", replace(REPORT, slots=(SLOT_LOAD._replace(slot_id=1 << 20),))),
    *(
        ("negative", f"{name} is -1", replace(REPORT, bundles=(_with(BUNDLE_LOAD, name, -1),)))
        for name in BundleLoad._fields[1:]
    ),
    *(
        ("not_a_number", f"{name} is nan", replace(REPORT, bundles=(_with(BUNDLE_LOAD, name, float("nan")),)))
        for name in BundleLoad._fields[1:5]
    ),
    *(
        ("negative", f"{name} is -1", replace(REPORT, slots=(SLOT_LOAD._replace(**{name: -1}),)))
        for name in SlotLoad._fields[1:]
    ),
]


@pytest.mark.parametrize(
    ("reason", "named", "payload"),
    IMPOSSIBLE,
    ids=[f"{type(each[2]).__name__}-{each[0]}-{each[1]}" for each in IMPOSSIBLE],
)
def test_an_impossible_value_is_refused_on_both_sides(reason: str, named: str, payload: InputPayload) -> None:
    """The writer hears of it at once; one that does not check is caught by the reader; the detail names the value."""
    topic = TOPIC_OF[type(payload)]
    read = _refusal(topic, _encode_unchecked(payload), _key(payload))
    with pytest.raises(InvalidInputError) as written:
        encode_input(payload)
    assert (read.reason, written.value.reason) == (reason, reason)
    assert named in read.detail


@pytest.mark.parametrize("node_id", ["n" * MAX_NODE_ID_BYTES, "ü" * 127 + "n"])
def test_the_longest_name_of_a_node_is_accepted(node_id: str) -> None:
    """The limit is one of bytes in UTF-8, which is what other languages count."""
    payload = replace(REPORT, node_id=node_id)
    assert decode_input("load-reports", _raw("load-reports", encode_input(payload), _key(payload))).payload == payload


def test_unknown_usage_is_accepted() -> None:
    """Minus one of minus one means "not measured" (Pulsar), the only negative numbers that mean something."""
    payload = replace(REPORT, cpu=ResourceUsage(-1.0, -1.0))
    assert decode_input("load-reports", _raw("load-reports", encode_input(payload))).payload == payload


@pytest.mark.parametrize(
    ("name", "datum", "reason", "named"),
    [
        ("Heartbeat", {**to_datum(HEARTBEAT), "role": "boss"}, "unknown_role", "Heartbeat.role is 'boss'"),
        ("NodeJoined", {**to_datum(JOINED), "role": ""}, "unknown_role", "data, session"),
        (
            "Heartbeat",
            {**to_datum(HEARTBEAT), "bundle_statuses": [{"bundle_id": "b", "status": "ill"}]},
            "unknown_status",
            "BundleStatus.status is 'ill'",
        ),
        (
            "Heartbeat",
            {
                **to_datum(HEARTBEAT),
                "bundle_steps": [{"bundle_id": "b", "version": 1, "step": "gone", "bounds": []}],
            },
            "unknown_step",
            "BundleStepReport.step is 'gone'",
        ),
    ],
)
def test_an_unknown_name_is_refused(name: str, datum: dict[str, Any], reason: str, named: str) -> None:
    """Enums travel as texts: a value of a newer version is refused by name and not taken for another."""
    topic = "membership" if name == "NodeJoined" else "heartbeats"
    refusal = _refusal(topic, default_framing().encode(name, datum))
    assert refusal.reason == reason
    assert named in refusal.detail


@pytest.mark.parametrize("payload", VALID, ids=lambda payload: type(payload).__name__)
@pytest.mark.parametrize("topic", TOPIC_TYPES)
def test_a_record_counts_on_its_own_topic_only(payload: InputPayload, topic: str) -> None:
    """A join among heartbeats would be out of the order that its topic promises."""
    if topic == TOPIC_OF[type(payload)]:
        assert decode_input(topic, _raw(topic, encode_input(payload), _key(payload))).payload == payload
    else:
        refusal = _refusal(topic, encode_input(payload), _key(payload))
        assert refusal.reason == "wrong_record_type"
        assert type(payload).__name__ in refusal.detail


@given(DECISIONS)
def test_a_decision_is_no_input(decision: Any) -> None:  # noqa: ANN401 - a generated decision
    """A record of ours in the wrong topic is as foreign as any other."""
    assert _refusal("heartbeats", encode_decision(decision)[0]).reason == "wrong_record_type"


@pytest.mark.parametrize("payload", [each for each in VALID if each is not TICK], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("key", [None, b"", b"n2", b"\xff"])
def test_the_key_has_to_be_the_id(payload: InputPayload, key: bytes | None) -> None:
    """The key chooses the partition: under a wrong one a node's records would lose their order."""
    topic = TOPIC_OF[type(payload)]
    assert _refusal(topic, encode_input(payload), key).reason == "key_mismatch"


def test_a_ticks_key_does_not_matter() -> None:
    """Ticks go to every partition by number, so their key cannot choose it."""
    assert decode_input("heartbeats", _raw("heartbeats", encode_input(TICK), None)).payload == TICK


def test_a_record_without_value_is_refused() -> None:
    """Input topics are not compacted: a tombstone means nothing there."""
    assert _refusal("heartbeats", None).reason == "missing_value"


def test_records_with_the_senders_time_are_refused_whatever_they_hold() -> None:
    """Log time is made of the gaps between ticks: a sender's clock must not have a part in it, nor date a join."""
    for payload in VALID:
        topic = TOPIC_OF[type(payload)]
        raw = _raw(topic, encode_input(payload), _key(payload))
        assert decode_input(topic, raw).payload == payload
        with pytest.raises(InvalidInputError) as caught:
            decode_input(topic, raw._replace(is_append_time=False))
        assert caught.value.reason == "not_append_time"


@pytest.mark.parametrize("payload", [LEFT, replace(LEFT, reason="r" * MAX_RECORD_BYTES)])
def test_a_record_over_the_limit_is_refused(payload: NodeLeft) -> None:
    """One huge record must not slow down the intake: it is not even decoded; the longest that fits is accepted."""
    if payload is LEFT:
        room = MAX_RECORD_BYTES - len(encode_input(LEFT)) - len(b"n1")
        longest = replace(LEFT, reason="r" * (room - 2 + len(LEFT.reason)))  # its length takes two bytes more
        assert len(encode_input(longest)) + len(b"n1") == MAX_RECORD_BYTES
        assert decode_input("membership", _raw("membership", encode_input(longest))).payload == longest
        payload = replace(longest, reason=longest.reason + "r")
    else:
        with pytest.raises(InvalidInputError, match="record_too_large"):
            encode_input(payload)
    assert _refusal("membership", _encode_unchecked(payload)).reason == "record_too_large"


def test_a_topic_that_is_no_input_is_a_mistake_of_the_caller() -> None:
    """Reading the decision log as input is a defect, not a bad record."""
    with pytest.raises(ValueError, match="decisions"):
        decode_input("decisions", _raw("decisions", b""))


@given(st.one_of(*INPUTS.values()))
def test_confluent_framed_inputs_are_accepted(payload: InputPayload) -> None:
    """A node behind a schema registry takes part like every other."""
    ids = {name: number for number, name in enumerate(default_store().names())}
    schema_id = ids[type(payload).__name__]
    value = encode_input(payload)
    written_as = {schema_id: str(default_framing().unframe(value)[0].id)}
    framing = framing_with({number: f"{name}.v1" for name, number in ids.items()} | written_as)
    encoded = b"\x00" + schema_id.to_bytes(4, "big") + value[SINGLE_OBJECT_HEADER_BYTES:]
    topic = TOPIC_OF[type(payload)]
    raw = _raw(topic, encoded, _key(payload))
    assert decode_input(topic, raw, framing).payload == payload
    assert _refusal(topic, encoded, _key(payload)).reason == "unknown_schema_id"


@given(INPUTS[Heartbeat])
def test_heartbeats_of_an_older_schema_are_read(heartbeat: Heartbeat) -> None:
    """Controllers are upgraded before nodes: what the nodes still write gets the newest schema's defaults."""
    newest: Any = json.loads(default_store().current("Heartbeat").text)
    fields = [each for each in newest["fields"] if each["name"] not in ("slot_settings", "bundle_statuses")]
    older = parse_schema_text(json.dumps({**newest, "fields": fields}), SchemaVersion("Heartbeat", 1))
    newer = parse_schema_text(json.dumps(newest), SchemaVersion("Heartbeat", 2))
    others = [schema for schema in default_store().all() if schema.name != "Heartbeat"]
    datum = {each["name"]: to_datum(heartbeat)[each["name"]] for each in fields}
    encoded = Framing(SchemaStore([older])).encode("Heartbeat", datum)
    raw = _raw("heartbeats", encoded, heartbeat.node_id.encode())
    record = decode_input("heartbeats", raw, Framing(SchemaStore([*others, older, newer])))
    assert record.payload == heartbeat._replace(slot_settings=None, bundle_statuses=())


@pytest.mark.parametrize("kind", get_args(InputPayload), ids=lambda kind: kind.__name__)
def test_every_kind_of_input_has_its_topic_and_its_check(kind: type[InputPayload]) -> None:
    """A kind without a topic could never be read; one without a check ends in an error of the checks' table."""
    assert [topic for topic, kinds in TOPIC_TYPES.items() if kind in kinds] == [TOPIC_OF[kind]]
    assert kind in INPUTS, f"tests/helpers/log_values.py has no {kind.__name__}"
    samples = [each.value for each in SAMPLES if isinstance(each.value, kind)]
    assert samples, f"add a {kind.__name__} to tests/golden/samples/"
    for payload in samples:
        check_payload(payload)


def test_a_tick_that_names_nothing_is_written_as_older_releases_read_it() -> None:
    """Below feature level 3 controllers of such a release may lead, and would refuse every tick."""
    written = [encode_input(TICK), encode_input(TICK._replace(seq=Seq(7), table_epoch=Epoch(3)))]
    assert [str(default_framing().unframe(value)[0].id) for value in written] == ["Tick.v1", "Tick.v2"]
