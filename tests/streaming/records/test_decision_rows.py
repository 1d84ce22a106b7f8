"""Records of the decision log to rows of ``decisions``: one for each decision, however it was cut. No Spark runs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Seq
from controlplane.errors import LogContinuityError, UnsupportedFeatureLevelError
from streaming.contracts.records import DECISIONS_TABLE
from streaming.records.decision_rows import Part, decision_rows, part_of
from streaming.records.decode import RawRow
from tests.golden.samples import sample_of
from tests.helpers.world import World

LARGE = sample_of(Decision, "everything")
SMALL = sample_of(Decision, "positions only")
PART_BYTES = 700


@pytest.fixture(scope="module")
def decisions() -> list[Decision]:
    """Decisions of a small cluster; those that admit nodes carry every slot."""
    world = World(ClusterPolicy(slot_count=128))
    world.admit("n1", "n2")
    world.admit("n3")
    return world.decisions


def _log(parts: Sequence[bytes | None]) -> list[RawRow]:
    return [RawRow(0, offset, 1_000, None, value) for offset, value in enumerate(parts)]


def _columns(rows: list[tuple[object, ...]], *names: str) -> list[tuple[object, ...]]:
    places = [[field.name for field in DECISIONS_TABLE.fields].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in rows]


def test_each_decision_counts_its_own_parts(decisions: list[Decision]) -> None:
    """A row says in how many records its decision was written and stands at the last one, also after another one."""
    cut = [encode_decision(decision, 1_000) for decision in decisions]
    counts = [len(parts) for parts in cut]
    assert sum(count > 1 for count in counts) >= 2
    rows = list(decision_rows(_log([part for parts in cut for part in parts])))
    assert _columns(rows, "seq", "part_count", "offset", "digest") == [
        (decision.seq, count, end - 1, decision.digest())
        for decision, count, end in zip(decisions, counts, accumulate(counts), strict=True)
    ]


def test_a_decision_that_is_not_whole_gives_no_row_yet(decisions: list[Decision]) -> None:
    """It belongs to the batch that holds its last record: half a decision would count its moves wrongly."""
    first, second = (encode_decision(decision, 1_000) for decision in decisions[-2:])
    rows = list(decision_rows(_log([*first, *second[:-1]])))
    assert _columns(rows, "seq") == [(decisions[-2].seq,)]


def test_a_part_that_does_not_follow_is_refused(decisions: list[Decision]) -> None:
    """A batch that begins or goes on in the middle of a decision must not pass for whole decisions."""
    parts = encode_decision(decisions[-1], 1_000)
    for broken, stands in ((parts[1:], "@0 .*part 1 of"), ([parts[0], parts[0]], "@1 .*part 0 of")):
        with pytest.raises(LogContinuityError, match=rf"decisions\[0\]{stands}.*mend-the-pipeline"):
            list(decision_rows(_log(broken), next_seq=decisions[-1].seq))


@pytest.mark.parametrize("seqs", [(4, 6), (4, 4), (4, 5, 3)], ids=str)
@pytest.mark.parametrize("sample", [LARGE, SMALL], ids=["large", "small"])
def test_a_decision_that_does_not_follow_is_refused(sample: Decision, seqs: Sequence[int]) -> None:
    """One that is missing in the log, or there twice: what is due, what came instead, and where, is told."""
    *first, last = (encode_decision(replace(sample, seq=Seq(seq)), PART_BYTES) for seq in seqs)
    records = _log([b"foreign", *(part for parts in [*first, last] for part in parts)])
    told = rf"decisions\[0\]@{records[-1].offset} .*: decision {seqs[-2] + 1} is due, and decision {seqs[-1]} is there"
    for next_seq in (None, Seq(seqs[0])):
        rows = decision_rows(records, next_seq=next_seq)
        assert [next(rows)[5] for _ in first] == list(seqs[:-1])
        with pytest.raises(LogContinuityError, match=told):
            next(rows)
    with pytest.raises(LogContinuityError, match="decision 3 is due, and decision 4 is there"):
        next(decision_rows(records, next_seq=Seq(3)))


@pytest.mark.parametrize("first_part", range(len(encode_decision(LARGE, PART_BYTES))))
def test_a_table_may_begin_wherever_the_log_does(first_part: int) -> None:
    """Also within a decision, the first parts of which Kafka has deleted: the next one is the first."""
    seqs = range(8, 11)
    parts = [part for seq in seqs for part in encode_decision(replace(LARGE, seq=Seq(seq)), PART_BYTES)]
    passed_by: list[RawRow] = []
    records = _log([b"foreign", *parts[first_part:]])
    rows = list(decision_rows(records, on_foreign=passed_by.append))
    assert _columns(rows, "seq") == [(seq,) for seq in seqs[1 if first_part else 0 :]]
    assert set(_columns(rows, "part_count")) == {(len(parts) // len(seqs),)}
    assert passed_by == records[:1]


def test_the_number_of_a_part_is_read_from_its_record(decisions: list[Decision]) -> None:
    """The bounds of a batch are set by it."""
    last = decisions[-1]
    parts = encode_decision(last, 1_000)
    numbers = [part_of(record, "") for record in _log(parts)]
    assert numbers == [Part(last.log_id, last.seq, number) for number in range(len(parts))]


@pytest.mark.parametrize("value", [None, b"", b"no avro", b"\xc3\x01" + b"12345678", b"x" * 900_000])
def test_a_record_that_is_none_of_the_log_is_passed_by(value: bytes | None, decisions: list[Decision]) -> None:
    """It stops no stream, wherever it stands, between two parts of a decision too."""
    log_id = decisions[0].log_id
    assert part_of(RawRow(0, 7, 1_000, None, value), log_id) is None
    parts = [part for decision in decisions for part in encode_decision(decision, 1_000)]
    other = encode_decision(replace(decisions[0], log_id="another"))[0]
    disturbed = [record for part in parts for record in (value, part, other)]
    rows = list(decision_rows(_log(disturbed), log_id))
    assert _columns(rows, "seq", "digest", "part_count") == _columns(
        list(decision_rows(_log(parts))), "seq", "digest", "part_count"
    )


def test_a_decision_of_a_newer_version_stops_the_stream(decisions: list[Decision]) -> None:
    """To pass it by would lose it; under the key of no decision it is none."""
    newer = b"\xc3\x01" + b"12345678"
    log = [RawRow(0, 1, 1_000, decision_key(Seq(1)), encode_decision(decisions[0])[0])]
    assert len(list(decision_rows([*log, RawRow(0, 2, 1_000, b"7", newer)]))) == 1
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        list(decision_rows([*log, RawRow(0, 2, 1_000, b"2", newer)]))


def test_a_decimal_key_alone_makes_no_decision_of_a_newer_version(decisions: list[Decision]) -> None:
    """Where the next decision is known, first in a batch as well as between two parts of the first decision there."""
    newer = b"\xc3\x01" + b"12345678"
    last = decisions[-1]
    foreign = RawRow(0, 1, 1_000, b"7000", newer)
    assert part_of(foreign, last.log_id, last.seq) is None
    passed_by: list[RawRow] = []
    parts = [RawRow(0, 2, 1_000, decision_key(last.seq), part) for part in encode_decision(last, 1_000)]
    assert len(list(decision_rows([parts[0], foreign, *parts[1:]], last.log_id, passed_by.append))) == 1
    assert passed_by == [foreign]
    own = foreign._replace(key=decision_key(last.seq))
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        part_of(own, last.log_id, last.seq)
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        list(decision_rows([parts[0], own, *parts[1:]], last.log_id))


def test_row_tells_the_whole_decision() -> None:
    """Everything that a decision says is in its row, the nested parts as JSON that names its types."""
    ((*values,),) = decision_rows(_log(encode_decision(LARGE, PART_BYTES)))
    row: dict[str, Any] = dict(zip(DECISIONS_TABLE.columns, values, strict=True))
    assert (row["seq"], row["term"], row["epoch"], row["controller_id"]) == (7, 3, 4, "controller-1")
    assert (row["moved"], row["least_moved"], row["leader_changes"], row["lost_slots"]) == (4, 4, 2, [11, 12])
    carried_out = (row["moves_carried_out"], row["leader_changes_carried_out"], row["moves_left"])
    assert carried_out == (LARGE.moves_carried_out, LARGE.leader_changes_carried_out, LARGE.moves_left) == (5, 3, 2)
    assert row["causes"] == [(cause.kind.value, cause.subject, cause.evidence) for cause in LARGE.causes]
    assert row["cause_kinds"] == [cause.kind.value for cause in LARGE.causes]
    assert row["event_types"] == [type(event).__name__ for event in LARGE.events]
    assert [event["type"] for event in json.loads(row["events"])] == row["event_types"]
    assert json.loads(row["certificate"]) == json.loads(canonical_bytes(LARGE.certificate))
    assert row["positions"] == dict(LARGE.positions)
    assert row["digest"] == LARGE.digest()
    assert row["part_count"] == len(_log(encode_decision(LARGE, PART_BYTES))) > 1
    assert row["offset"] == row["part_count"] - 1


def test_decision_without_a_plan_has_no_moves() -> None:
    """No certificate is not the same as no moves: the columns are null, not 0."""
    ((*values,),) = decision_rows(_log(encode_decision(SMALL, PART_BYTES)))
    row: dict[str, Any] = dict(zip(DECISIONS_TABLE.columns, values, strict=True))
    assert {row[name] for name in ("moved", "least_moved", "certificate", "lost_slots")} == {None}
    assert (row["moves_carried_out"], row["moves_left"]) == (0, 0)
    assert (row["events"], row["event_types"]) == ("[]", [])


@given(st.lists(st.sampled_from([LARGE, SMALL]), min_size=1, max_size=5), st.data())
def test_any_cut_gives_each_decision_once(decisions: list[Decision], data: st.DataObject) -> None:
    """However batches cut the log, none is lost or doubled when a batch first reads the parts before it."""
    numbered = [replace(decision, seq=Seq(number)) for number, decision in enumerate(decisions, start=1)]
    records = _log([part for decision in numbered for part in encode_decision(decision, PART_BYTES)])
    cuts = data.draw(st.sets(st.integers(1, len(records))))
    bounds = [0, *sorted(cuts | {len(records)})]
    seqs = []
    for start, end in pairwise(bounds):
        if start < end:
            part = part_of(records[start], "")
            earlier = part.part if part is not None else 0
            seqs += [row[5] for row in decision_rows(records[start - earlier : end])]
    assert seqs == list(range(1, len(decisions) + 1))
