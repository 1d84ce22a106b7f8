"""Recordings of simulated runs, with which another version of the code can be compared.

A recording is a folder with one file for each seed: the inputs in canonical form with their places, the decisions in
canonical form, and a SHA-256 of each topic's contents. Two versions that decide and write the same give equal
recordings. A version that only renames things retakes the recorded decisions from the recorded inputs, with a table of
names, and has to decide the same.
"""

import base64
import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.inputs import TOPIC_TYPES, decode_input, encode_input
from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP, ROUTING_TABLE
from controlplane.core.audit.log_audit import LogAudit
from controlplane.core.log.apply import apply_all, stamp
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.values.canonical import from_canonical, to_canonical
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import InvalidInputError
from controlplane.inspection.auditing import Auditor
from controlplane.ports import LogReader, RawRecord
from controlplane.testing import MemoryLogReader
from controlplane.topic_reading.decision_stream import DecisionStream
from tests.helpers.recorded_log import RecordedReader
from tests.helpers.sources import source_at_rest
from tests.simulation.memo import decoding_once
from tests.simulation.run import Run
from tests.simulation.world import World

_INPUTS: Final = (HEARTBEATS, MEMBERSHIP, INTENTS)
_HASHED: Final = (*_INPUTS, DECISIONS, ROUTING_TABLE)
_BATCH: Final = 2_000


def record_run(seed: int | str) -> dict[str, Any]:
    """Run a seed to its end and return its recording.

    Raises:
        AssertionError: the run broke an invariant: it shows nothing about decisions.
    """
    with decoding_once():
        run = Run(str(seed))
        report = run.to_its_end()
    assert not report.broken, f"seed {seed}: {report.broken}"
    return recording_of(run.world)


def recording_of(world: World) -> dict[str, Any]:
    """The contents of the topics after a run."""
    reader = MemoryLogReader(world.cluster, world.broker)
    records = {topic: list(_records_of(reader, topic)) for topic in _HASHED}
    stream = DecisionStream()
    decisions = [stream.take(record) for record in records[DECISIONS]]
    return {
        "sha256": {topic: _sha256(found) for topic, found in records.items()},
        "partitions": {topic: reader.partition_count(topic) for topic in _INPUTS},
        "inputs": [_plain_input(record) for topic in _INPUTS for record in records[topic]],
        "decisions": [to_canonical(decision) for decision in decisions if decision is not None],
    }


def write_recording(folder: Path, seed: int | str, recording: Mapping[str, Any]) -> None:
    """Write the file of one seed; equal recordings are equal files."""
    text = json.dumps(recording, sort_keys=True, separators=(",", ":"))
    (folder / f"{seed}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def read_recording(folder: Path, seed: int | str) -> dict[str, Any]:
    """Read the file of one seed."""
    recording: dict[str, Any] = json.loads(gzip.decompress((folder / f"{seed}.json.gz").read_bytes()))
    return recording


class Names:
    """How a recording's names are said by the code that reads it.

    ``keys`` are names of fields, and ``texts`` regular expressions with what replaces them in every text that they
    match as a whole: names of types, words of enumerations, sentences of evidence.
    """

    def __init__(self, keys: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Prepare the table."""
        self._keys = keys
        self._texts = [(re.compile(pattern), text) for pattern, text in texts.items()]
        self._said: Callable[[str], str] = cache(self._say)

    @classmethod
    def read(cls, path: Path) -> "Names":
        """The table in a JSON file with ``keys`` and ``texts``."""
        table = json.loads(path.read_text(encoding="utf-8"))
        return cls(table["keys"], table["texts"])

    def translated(self, plain: Any) -> Any:  # noqa: ANN401 - any JSON
        """The same value by its present names."""
        if isinstance(plain, dict):
            return {self._keys.get(key, key): self.translated(value) for key, value in plain.items()}
        if isinstance(plain, list):
            return [self.translated(item) for item in plain]
        return self._said(plain) if isinstance(plain, str) else plain

    def _say(self, text: str) -> str:
        for pattern, said in self._texts:
            found = pattern.fullmatch(text)
            if found:
                return found.expand(said)
        return text


@dataclass(frozen=True)
class Retaken:
    """The result of retaking a recording's decisions.

    Attributes:
        decisions: the number of its decisions.
        retaken: how many of them could be taken again from its inputs.
        differences: between recorded and retaken ones, in sentences.
    """

    decisions: int
    retaken: int
    differences: tuple[str, ...]


def retake(recording: Mapping[str, Any], names: Names) -> Retaken:
    """Take the recorded decisions again, as an audit does; digests and fingerprints are those of the present code."""
    records: dict[TopicPartition, list[RawRecord]] = defaultdict(list)
    for topic, count in recording["partitions"].items():
        records |= {TopicPartition(topic, partition): [] for partition in range(count)}
    for topic, partition, offset, append_time_ms, key, kind, content in recording["inputs"]:
        raw = _encoded_input(topic, kind, content, names)
        place = TopicPartition(topic, partition)
        key_bytes = None if key is None else base64.b64decode(key)
        records[place].append(RawRecord(topic, partition, offset, append_time_ms, key_bytes, raw))
    place = TopicPartition(DECISIONS, 0)
    for decision in _chained(names.translated(recording["decisions"])):
        for value in encode_decision(decision):
            offset = len(records[place])
            records[place].append(RawRecord(DECISIONS, 0, offset, 0, decision_key(decision.seq), value))
    log_audit = LogAudit()
    found = []
    for audited in Auditor(log_audit, *(source_at_rest(RecordedReader(records)) for _ in range(2))).run():
        if audited.followed_because:
            found.append(f"decision {audited.seq} cannot be taken again: {audited.followed_because}")
        found += [str(difference) for difference in audited.differences]
    return Retaken(len(recording["decisions"]), log_audit.retaken, tuple(found))


def _chained(plain_decisions: list[Any]) -> Iterator[Decision]:
    """The decisions with the digests and fingerprints that the present code gives them."""
    state = State()
    for plain in plain_decisions:
        after = apply_all(state, (decision := from_canonical(Decision, plain)).events)
        fingerprint = after.cluster.policy.fingerprint()
        decision = replace(decision, previous_digest=state.last_digest, policy_fingerprint=fingerprint)
        stamped = stamp(after, decision)
        decision = decision.with_state_digest(stamped.digest())
        state = replace(stamped, last_digest=decision.digest())
        yield decision


def _records_of(reader: LogReader, topic: str) -> Iterator[RawRecord]:
    starts, ends = reader.start_offsets(topic), reader.end_offsets(topic)
    for place, start in starts.items():
        reader.assign({place: start})
        while batch := reader.poll(_BATCH, 0).records:
            yield from (record for record in batch if record.offset < ends[place])


def _sha256(records: list[RawRecord]) -> str:
    hashed = hashlib.sha256()
    for record in records:
        hashed.update(repr(tuple(record)).encode())
    return hashed.hexdigest()


def _plain_input(record: RawRecord) -> list[Any]:
    key = None if record.key is None else base64.b64encode(record.key).decode()
    try:
        payload = decode_input(record.topic, record).payload
    except InvalidInputError:
        payload = None
    place = [record.topic, record.partition, record.offset, record.append_time_ms, key]
    if payload is None:
        return [*place, "", None if record.value is None else base64.b64encode(record.value).decode()]
    return [*place, type(payload).__name__, to_canonical(payload)]


def _encoded_input(topic: str, kind: str, content: Any, names: Names) -> bytes | None:  # noqa: ANN401 - any JSON
    """The bytes of an input. An empty ``kind`` marks an input that could not be decoded when it was recorded."""
    if not kind:
        return None if content is None else base64.b64decode(content)
    kinds = {each.__name__: each for each in TOPIC_TYPES[topic]}
    payload = from_canonical(kinds[names.translated(kind)], names.translated(content))
    return encode_input(payload)
