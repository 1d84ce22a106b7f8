"""Decision logs: whole ones with the digest of each decision, and altered ones with the place where a reader stops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controlplane.codec.decisions import DEFAULT_MAX_PART_BYTES, decision_key, encode_decision
from controlplane.config import ClusterConfig
from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.slots.certificate import Certificate
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Epoch, Seq, Term
from tests.golden.samples import SAMPLES, Sample
from tests.helpers.published_world import PublishedWorld
from tests.vectors.script_topic import text_of

WHOLE, REFUSED = "whole", "refused"
ODD_TEXT: Final = 'tab\there, "quoted" \\ / \b\f\n\r\x01\x1f \x7f \u2028 键 \U0001f600'
_SMALL_PARTS: Final = 420
_LATER_FEATURE_LEVEL: Final = 1_000


def canonical_cases() -> list[dict[str, Any]]:
    """The contents of ``decision_digests.json``: every event and every field, each decision for itself."""
    return [
        {
            "name": sample.name,
            "values": [text_of(part) for part in encode_decision(sample.value, sample.max_part_bytes)],
            "digest": sample.value.digest(),
            "canonical": canonical_bytes(sample.value).decode(),
        }
        for sample in (*SAMPLES, *_odd_values())
        if isinstance(sample.value, Decision)
    ]


def _odd_values() -> Iterator[Sample]:
    """Numbers and texts at which two writers of JSON may differ."""
    plain = next(sample.value for sample in SAMPLES if sample.name == "positions only")
    assert isinstance(plain, Decision)
    ratios = (1.0, 0.1, 0.0001, 0.00001, 1.5e-07, 0.1 + 0.2)
    events = tuple(PolicyChanged(ClusterPolicy(protected_ratio=ratio), None) for ratio in ratios)
    yield Sample("numbers", replace(plain, events=events))
    names = ("a", "B", "é", "\uff5e", "\U0001f600")
    prices = {name: index - 2 for index, name in enumerate(names)}
    proof = Certificate("minimal", 0, 0, 0, 0, prices, {}, (), (), {}, {}, 0, 0, (ODD_TEXT,))
    yield Sample("texts", replace(plain, certificate=proof))


def described(decision: Decision) -> dict[str, Any]:
    """What a log reader knows of a decision after joining and digesting it."""
    return {"seq": decision.seq, "term": decision.term, "epoch": decision.epoch, "digest": decision.digest()}


def real_log() -> list[Decision]:
    """A short log as a leader writes it: two nodes, a namespace, a dead node, another leader, rights and odd texts."""
    world = PublishedWorld(ClusterConfig("vectors"), ClusterPolicy(slot_count=4, protected_ratio=0.75))
    world.admit("n1", "n2")
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ("n1", "n2"))
    world.run(4_000, ("n1",))
    world.open_term(Term(3))
    world.intent("i2", "change_policy", **{"intent_rights.für-*": "*", "intent_rights.tester": "*"})
    world.intent("i3", "pause_reconciliation", reason=ODD_TEXT)
    world.run(300, ("n1",))
    return world.decisions


@dataclass
class _Log:
    """Records of the topic under work, and what a reader makes of them."""

    name: str
    about: str
    rules: str
    outcome: str = WHOLE
    records: list[dict[str, Any]] = field(default_factory=list)
    read: list[Decision] = field(default_factory=list)

    def add(self, decisions: Sequence[Decision], max_part_bytes: int = DEFAULT_MAX_PART_BYTES) -> "_Log":
        """Decisions that a reader takes."""
        for decision in decisions:
            for part in encode_decision(decision, max_part_bytes):
                self.add_raw(decision_key(decision.seq), part)
            self.read.append(decision)
        return self

    def add_raw(self, key: bytes | None, value: bytes | None) -> "_Log":
        """A record that completes nothing."""
        self.records.append({"key": text_of(key), "value": text_of(value)})
        return self

    def stop_at(self, *parts: bytes, seq: int = 4) -> "_Log":
        """Records at which a reader stops."""
        for part in parts:
            self.add_raw(decision_key(Seq(seq)), part)
        self.outcome = REFUSED
        return self

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rules": self.rules.split(),
            "about": self.about,
            "records": self.records,
            "expected": {"outcome": self.outcome, "decisions": [described(decision) for decision in self.read]},
        }


def decision_log_cases() -> list[dict[str, Any]]:
    """The contents of ``decision_logs.json``."""
    log = real_log()
    before, fourth, rest = log[:3], log[3], log[4:]
    whole = [
        _Log("a whole log", "Every decision in one record.", "L1 L5 L7").add(log),
        _Log("a whole log in parts", "The same decisions, cut.", "L2 L3 L4 L7").add(log, _SMALL_PARTS),
        _Log("an empty log", "No leader has ever led.", "L5"),
    ]
    logs = [*whole, *_broken_chains(before, fourth), *_unknown_records(before, fourth, rest)]
    return [each.document() for each in logs]


def _broken_chains(before: Sequence[Decision], fourth: Decision) -> list[_Log]:
    """Logs whose fourth decision no leader writes after the first three, or that lack a part."""
    logs = []
    for name, altered in {
        "a gap in seq": replace(fourth, seq=Seq(5)),
        "a repeated seq": replace(fourth, seq=Seq(3)),
        "another previous digest": replace(fourth, previous_digest="ab" * 32),
        "an epoch that falls": replace(fourth, epoch=Epoch(2)),
        "an epoch that jumps": replace(fourth, epoch=Epoch(5)),
        "a falling term": replace(fourth, term=Term(0)),
        "a term that nobody opened": replace(fourth, term=Term(2)),
    }.items():
        refused = _Log(name, "No leader writes that behind the third decision.", "L5").add(before)
        logs.append(refused.stop_at(*encode_decision(altered), seq=altered.seq))

    cause = replace(before[2].causes[0], evidence="something else")
    changed = replace(before[2], causes=(cause, *before[2].causes[1:]))
    rewritten = _Log("a decision that was altered", "The next one does not repeat its digest.", "L5 L7")
    logs.append(rewritten.add([*before[:2], changed]).stop_at(*encode_decision(fourth)))

    late = _Log("a log that begins late", "The first decisions are gone.", "L5").stop_at(*encode_decision(fourth))
    logs.append(late)

    parts = encode_decision(fourth, _SMALL_PARTS)
    missing = _Log("a missing part", "The last part stands where another one has to.", "L2").add(before)
    logs.append(missing.stop_at(*parts[:-2], parts[-1]))
    begun = _Log("a decision without its first part", "A reader begins at part 0.", "L2").add(before)
    logs.append(begun.stop_at(*parts[1:]))

    return logs


def _unknown_records(before: Sequence[Decision], fourth: Decision, rest: Sequence[Decision]) -> list[_Log]:
    """Logs with records that a reader cannot decode, and with another log's decisions."""
    logs = []
    parts = encode_decision(fourth, _SMALL_PARTS)
    newer = replace(fourth, feature_level=_LATER_FEATURE_LEVEL)
    level = _Log("a feature level of a later version", "Only an upgrade reads on.", "L6").add(before)
    logs.append(level.stop_at(*encode_decision(newer)))
    later = b"\xc3\x01later\x00v9" + b"\x02\x06abc"
    schema = _Log("a log that begins with an unknown schema", "Only an upgrade reads it.", "L6")
    logs.append(schema.stop_at(later, seq=1))
    unknown = _Log("an unknown schema between decisions", "It is no part of the chain.", "L6 L9").add(before)
    logs.append(unknown.add_raw(b"2", later).add([fourth, *rest]))
    replaced = _Log("an unknown schema in the place of a decision", "The next one breaks the chain.", "L5 L6").add(
        before
    )
    logs.append(replaced.add_raw(b"4", later).stop_at(*encode_decision(rest[0]), seq=rest[0].seq))

    garbage = _Log("garbage between decisions", "It is no part of the chain.", "L9").add(before)
    garbage.add_raw(b"4", b"garbage").add_raw(b"nonsense", None).add_raw(None, b"x").add([fourth, *rest])
    logs.append(garbage)
    foreign = _Log("another log's decision behind ours", "It is no part of the chain.", "L9").add(before)
    for part in encode_decision(replace(fourth, log_id="77aa00")):
        foreign.add_raw(b"4", part)
    logs.append(foreign.add([fourth, *rest]))

    first = _Log("an unknown schema behind garbage, as the first decision", "Only an upgrade reads it.", "L6 L9")
    logs.append(first.add_raw(b"nonsense", b"garbage").stop_at(later, seq=1))
    stray = _Log("an unknown schema before the first decision", "The first decision has the key 1.", "L6 L9")
    logs.append(stray.add_raw(b"7", later).add_raw(None, later).add([*before, fourth, *rest]))
    other = _Log("another log's decision of a later feature level", "It is no part of the chain.", "L6 L9").add(before)
    for part in encode_decision(replace(newer, log_id="77aa00")):
        other.add_raw(b"4", part)
    logs.append(other.add([fourth, *rest]))
    between = _Log("garbage and another log's decision between parts", "The parts are joined across them.", "L2 L9")
    between.add(before).add_raw(b"4", parts[0]).add_raw(b"4", b"garbage").add_raw(None, None)
    for part in encode_decision(replace(fourth, log_id="77aa00")):
        between.add_raw(b"4", part)
    for part in parts[1:]:
        between.add_raw(b"4", part)
    between.read.append(fourth)
    logs.append(between.add(rest))
    return logs
