"""The comparisons by which a run is judged: each finds what it is there to find."""

from typing import Any

import pytest

from streaming.contracts.changes import SLOT_CHANGES_TABLE
from tests.pipeline_chaos.verdict import each_once, same_rows


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([1, 2, 3], []),
        ([1, 3], ["t: 1 missing, 2"]),
        ([1, 2, 3, 9], ["t: 1 not expected, 9"]),
        ([1, 2, 2, 3, 3], ["t: 2 more than once, 2, 3"]),
        ([2, 2, 4], ["t: 2 missing, 1, 3", "t: 1 not expected, 4", "t: 1 more than once, 2"]),
    ],
)
def test_each_once(found: list[int], told: list[str]) -> None:
    """Missing, strange and doubled ones are told, with the first of them."""
    assert list(each_once("t", [1, 2, 3], found)) == told


def row(seq: int, slot_id: int, **others: object) -> dict[str, Any]:
    """A row of a table of changes."""
    return {"seq": seq, "slot_id": slot_id, "to_leader": "n1", **others}


def test_same_rows() -> None:
    """Rows are found by their keys, in any order; what differs is told with its columns."""
    wanted = [row(1, 1), row(1, 2)]
    assert list(same_rows(SLOT_CHANGES_TABLE, wanted, reversed(wanted))) == []
    differing = [row(1, 2, to_leader="n2"), row(1, 1)]
    assert list(same_rows(SLOT_CHANGES_TABLE, wanted, differing)) == [
        "slot_changes: 1 rows differ, (1, 2) in to_leader"
    ]
    assert list(same_rows(SLOT_CHANGES_TABLE, wanted, [row(1, 1), row(1, 1)])) == [
        "slot_changes: 1 missing, (1, 2)",
        "slot_changes: 1 more than once, (1, 1)",
    ]
