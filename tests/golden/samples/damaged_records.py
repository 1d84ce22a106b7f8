"""Input records that are refused, made from the samples, and the reason of each refusal."""

import json
from dataclasses import dataclass, replace

from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import encode_decision
from controlplane.codec.framing import default_framing
from controlplane.codec.schema_store import SchemaVersion, default_store
from controlplane.core.bundles.reports import BundleStep, BundleStepReport, LoadReport, ResourceUsage
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotStatus
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from tests.golden.samples import bundles, log
from tests.golden.samples.sample import BUNDLE_ID


@dataclass(frozen=True, slots=True)
class Damaged:
    """An input record that is refused, and why."""

    name: str
    topic: str
    key: str
    value: bytes
    reason: str


def damaged() -> tuple[Damaged, ...]:
    """Records that are refused, made from the samples."""
    heartbeat = _encode(Heartbeat("node-1", 5, 6, Epoch(7), NodeRole.DATA))
    report = next(
        sample.value
        for sample in bundles.LOAD_REPORTS
        if sample.name == "full" and isinstance(sample.value, LoadReport)
    )
    beyond = heartbeat[:2] + bytes(8) + heartbeat[10:]
    nan = replace(report, cpu=ResourceUsage(float("nan"), 400.0))
    rate = report.bundles[0]._replace(message_rate_in_per_s=-1.0)
    long_name = "n\u00fc" * 86  # 258 bytes, 172 characters
    wrong_slot = SlotStatus(1 << 20, 1, True, ReplicaStatus.HEALTHY, 0)
    return (
        Damaged("no Avro", "heartbeats", "node-1", b'{"node_id": "node-1"}', "not_avro_framed"),
        Damaged("empty", "heartbeats", "node-1", b"", "not_avro_framed"),
        Damaged("header cut", "heartbeats", "node-1", heartbeat[:7], "truncated"),
        Damaged("body cut", "heartbeats", "node-1", heartbeat[:-1], "truncated"),
        Damaged("body too long", "heartbeats", "node-1", heartbeat + b"\x00", "trailing_bytes"),
        Damaged("unknown schema", "heartbeats", "node-1", beyond, "unknown_fingerprint"),
        Damaged("registry unknown", "heartbeats", "node-1", b"\x00\x00\x00\x00\x2a\x02\x78", "unknown_schema_id"),
        Damaged("broken text", "heartbeats", "node-1", heartbeat.replace(b"node-1", b"node-\xff"), "undecodable"),
        Damaged("a decision", "heartbeats", "7", encode_decision(log.POSITIONS_ONLY)[0], "wrong_record_type"),
        Damaged("another key", "heartbeats", "node-2", heartbeat, "key_mismatch"),
        Damaged("no name", "heartbeats", "", _encode(Heartbeat("", 5, 6, Epoch(7), NodeRole.DATA)), "empty_node_id"),
        Damaged(
            "long name",
            "heartbeats",
            long_name,
            _encode(Heartbeat(long_name, 5, 6, Epoch(7), NodeRole.DATA)),
            "long_node_id",
        ),
        Damaged(
            "slot out of range",
            "heartbeats",
            "node-1",
            _encode(Heartbeat("node-1", 5, 6, Epoch(7), NodeRole.DATA, slot_statuses=(wrong_slot,))),
            "slot_out_of_range",
        ),
        Damaged("not a number", "load-reports", "node-1", _encode(nan), "not_a_number"),
        Damaged(
            "negative rate",
            "load-reports",
            "node-1",
            _encode(replace(report, bundles=(rate,))),
            "negative",
        ),
        Damaged(
            "weightless",
            "membership",
            "node-1",
            _encode(NodeJoined("node-1", 5, NodeRole.DATA, (), "", 0, 0, "", 0)),
            "invalid_weight",
        ),
        *_damaged_steps(),
    )


def _damaged_steps() -> tuple[Damaged, ...]:
    released = BundleStepReport(BUNDLE_ID, 2, BundleStep.RELEASED)
    falling = BundleStepReport(BUNDLE_ID, 2, BundleStep.DIVIDED, (2, 1))
    return (
        Damaged("a step twice", "heartbeats", "node-1", _heartbeat_with(released, released), "duplicate_bundle_step"),
        Damaged("falling bounds", "heartbeats", "node-1", _heartbeat_with(falling), "invalid_bounds"),
        Damaged(
            "a bound beyond the hashes",
            "heartbeats",
            "node-1",
            _heartbeat_with(falling._replace(bounds=(1 << 32,))),
            "invalid_bounds",
        ),
        Damaged(
            "an unknown step",
            "heartbeats",
            "node-1",
            _heartbeat_with(released).replace(b"released", b"finished"),
            "unknown_step",
        ),
    )


def _heartbeat_with(*steps: BundleStepReport) -> bytes:
    return _encode(Heartbeat("node-1", 5, 6, Epoch(7), NodeRole.DATA, bundle_steps=steps), 2)


def _encode(value: object, version: int = 1) -> bytes:
    """The bytes of a value, in a version of its schema that has all fields that it uses, and without any check."""
    schema = default_store().by_version(SchemaVersion(type(value).__name__, version))
    assert schema is not None
    names = {field["name"] for field in json.loads(schema.text)["fields"]}
    datum = {name: item for name, item in to_datum(value).items() if name in names}
    return default_framing().encode(schema.name, datum, schema.id.version)
