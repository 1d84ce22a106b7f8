"""Dead letters, candidates and snapshot parts."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from controlplane.codec.outputs import (
    decode_candidate,
    decode_dead_letter,
    decode_snapshot_part,
    encode_candidate,
    encode_dead_letter,
    encode_snapshot_part,
)
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.errors import InvalidInputError
from tests.helpers.log_values import values_of


@given(values_of(DeadLetter))
def test_a_dead_letter_comes_back(dead_letter: DeadLetter) -> None:
    """The refused bytes have to survive whatever they are: they are the evidence."""
    assert decode_dead_letter(encode_dead_letter(dead_letter)) == dead_letter


@given(values_of(Candidate))
def test_a_candidate_comes_back(candidate: Candidate) -> None:
    """The leader judges the evidence that the pipeline wrote."""
    assert decode_candidate(encode_candidate(candidate)) == candidate


@given(values_of(SnapshotPart))
def test_a_snapshot_part_comes_back(part: SnapshotPart) -> None:
    """A state is rebuilt from the very bytes that its digest was taken over."""
    assert decode_snapshot_part(encode_snapshot_part(part)) == part


DEAD_LETTER = encode_dead_letter(DeadLetter("negative", "x", "heartbeats", 0, 1, 2, "c1", b"\x00", 1))
CANDIDATE = encode_candidate(Candidate("i", "split", "kv/a", "n1", "rule", {"b": "1", "a": "2"}, 1, 2))


@pytest.mark.parametrize("decode", [decode_dead_letter, decode_candidate, decode_snapshot_part])
@pytest.mark.parametrize("value", [b"", DEAD_LETTER, CANDIDATE, DEAD_LETTER[:-1], CANDIDATE + b"\x00"])
def test_other_bytes_are_refused(decode: Callable[[bytes], Any], value: bytes) -> None:
    """A record of another kind, a cut one and a longer one are refused, each reader for itself."""
    if (decode, value) in ((decode_dead_letter, DEAD_LETTER), (decode_candidate, CANDIDATE)):
        decode(value)
        return
    with pytest.raises(InvalidInputError):
        decode(value)


def test_the_order_of_evidence_does_not_matter() -> None:
    """Equal candidates are equal bytes, whatever order a dict was filled in."""
    turned = Candidate("i", "split", "kv/a", "n1", "rule", {"a": "2", "b": "1"}, 1, 2)
    assert encode_candidate(turned) == CANDIDATE
