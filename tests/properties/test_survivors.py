"""Taking the dead out of a table: nothing else changes, whoever dies."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.slots.survivors import rows_of_survivors
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch

NAMES = tuple("abcdef")
holders = st.lists(st.sampled_from(NAMES), unique=True, max_size=4)
tables = st.lists(holders, min_size=1, max_size=12).map(
    lambda rows: tuple(
        Slot(number, row[0] if row else None, tuple(sorted(row[1:])), Epoch(1)) for number, row in enumerate(rows)
    )
)
replicas = st.frozensets(st.tuples(st.integers(0, 11), st.sampled_from(NAMES)))


@given(tables, st.frozensets(st.sampled_from(NAMES)), replicas, st.booleans())
def test_only_the_dead_go(
    table: tuple[Slot, ...], living: frozenset[str], ready: frozenset[tuple[int, str]], spread: bool
) -> None:
    """Holders are the survivors; a living leader stays; an heir is ready if any survivor is, and has the new epoch."""
    changed = {slot.slot_id: slot for slot in rows_of_survivors(table, living, ready, Epoch(9), spread=spread)}
    for old in table:
        new = changed.get(old.slot_id, old)
        survivors = set(old.replicas) & living
        assert set(new.replicas) == survivors
        assert list(new.followers) == sorted(new.followers)
        assert (old.slot_id in changed) == (survivors != set(old.replicas))
        if old.leader in survivors:
            assert (new.leader, new.leader_epoch) == (old.leader, old.leader_epoch)
        elif survivors:
            can = {name for name in survivors if (old.slot_id, name) in ready} or survivors
            assert new.leader in can
            assert new.leader_epoch == 9


def test_heirs_are_taken_in_turn() -> None:
    """Among equals the one that leads fewest takes over, so that a dead node's slots do not all go to one."""
    table = tuple(Slot(number, "a", ("b", "c"), Epoch(1)) for number in range(4))
    leaders = [slot.leader for slot in rows_of_survivors(table, frozenset("bc"), frozenset(), Epoch(2), spread=True)]
    assert leaders == ["b", "c", "b", "c"]
    ready = frozenset({(0, "c"), (1, "c")})
    leaders = [slot.leader for slot in rows_of_survivors(table, frozenset("bc"), ready, Epoch(2), spread=True)]
    assert leaders == ["c", "c", "b", "b"]


def test_heirs_need_not_be_spread() -> None:
    """The first by name that is ready takes over, however many slots it leads."""
    table = tuple(Slot(number, "a", ("b", "c"), Epoch(1)) for number in range(3))
    ready = frozenset({(1, "c")})
    leaders = [slot.leader for slot in rows_of_survivors(table, frozenset("bc"), ready, Epoch(2), spread=False)]
    assert leaders == ["b", "c", "b"]


def test_a_row_that_has_lost_only_its_leader_already_gets_one() -> None:
    """So a table looks that is shown without what new processes do not hold."""
    table = (Slot(0, None, ("b",), Epoch(1)), Slot(1, None, (), Epoch(1)))
    assert rows_of_survivors(table, frozenset("b"), frozenset(), Epoch(2), spread=False) == (
        Slot(0, "b", (), Epoch(2)),
    )
