"""The persistent map in the order in which its keys first came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.values.ordered_map import OrderedMap

keys = st.integers(0, 6)
steps = st.lists(st.tuples(st.sampled_from(("put", "drop")), st.lists(keys, max_size=3, unique=True), st.integers()))


@given(st.dictionaries(keys, st.integers()), steps)
def test_map_is_a_dict_whose_changes_leave_it_as_it_was(
    start: dict[int, int], changes: list[tuple[str, list[int], int]]
) -> None:
    """Content and order follow those of a dict, also where the order has been asked for between two changes."""
    model, made = dict(start), OrderedMap(start)
    for kind, touched, value in changes:
        before, shown = made, [*made.items()]
        if kind == "put":
            made = made.put((key, value) for key in touched)
            model |= dict.fromkeys(touched, value)
        else:
            known = [key for key in touched if key in model]
            made = made.drop(known)
            model = {key: each for key, each in model.items() if key not in known}
        assert [*before.items()] == shown
        assert [*made.items()] == [*model.items()]
        assert (made == model, len(made), {*made}) == (True, len(model), {*model})


def test_map_says_what_it_is() -> None:
    """It equals a dict in any order, is its own copy, and refuses a key that it does not have."""
    made = OrderedMap([("b", 1), ("a", 2), ("b", 3)])
    assert repr(made) == "OrderedMap({'b': 3, 'a': 2})"
    assert made == {"a": 2, "b": 3}
    assert made != {"a": 2}
    assert OrderedMap.of(made) is made
    assert OrderedMap.of({"a": 1}) == {"a": 1}
    assert made.get("c", 9) == 9
    with pytest.raises(KeyError):
        made.drop(["c"])
    with pytest.raises(TypeError):
        hash(made)
