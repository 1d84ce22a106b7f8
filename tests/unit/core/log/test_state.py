"""What the digest of a state is made of."""

from dataclasses import fields, is_dataclass

from controlplane.core.log.state import Image, State, all_entries
from controlplane.core.values.entries import Entries


def test_every_part_of_the_state_is_an_image() -> None:
    """An image that is missing in ``Image`` would be digested as a whole, and its entries would never be checked."""
    parts = {each.name for each in fields(State) if is_dataclass(getattr(State(), each.name))}
    assert parts == {each.name for each in fields(State) if isinstance(getattr(State(), each.name), Image)}


def test_all_entries_of_every_image_are_found() -> None:
    """``wrong_digests`` checks what :func:`all_entries` names."""
    images = [(each.name, getattr(State(), each.name)) for each in fields(State)]
    expected = {
        f"{name}.{each.name}"
        for name, image in images
        if is_dataclass(image)
        for each in fields(image)
        if isinstance(getattr(image, each.name), Entries)
    }
    assert {path for path, _ in all_entries(State())} == expected
    assert len(expected) > 5
