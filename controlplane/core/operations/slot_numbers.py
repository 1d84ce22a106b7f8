"""Slot numbers in texts for operators: ``3,7-9``."""

import re
from collections.abc import Iterable
from typing import Final

from controlplane.core.values.identifiers import SlotId
from controlplane.errors import ConfigurationError

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?\Z")


def parse_slots(text: str, slot_count: int) -> tuple[SlotId, ...]:
    """The slots of a text such as ``3,7-9``, ascending and without repetition; ``all`` means every slot.

    Raises:
        ConfigurationError: the text is malformed, or names a slot that does not exist.
    """
    if text.strip() == "all":
        return tuple(range(slot_count))
    found: set[SlotId] = set()
    for part in re.split(r"[,\s]+", text.strip()):
        matched = _RANGE.match(part)
        if matched is None:
            raise ConfigurationError(f"slots {text!r:.80}: write numbers and ranges such as 3,7-9, or all")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if first > last:
            raise ConfigurationError(f"slots {text!r:.80}: the range {part} runs backwards")
        if last >= slot_count:
            raise ConfigurationError(f"slot {last} is unknown; known are 0 to {slot_count - 1}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def slot_ranges(slots: Iterable[SlotId], separator: str = " ") -> str:
    """Slot numbers in ascending order as ranges, for example ``0-3 7 9-10``."""
    return separator.join(map(_range_text, _ranges(slots)))


def leading_ranges(slots: Iterable[SlotId], most: int) -> str:
    """The first ``most`` ranges of :func:`slot_ranges` and the number of the other slots: ``0-3 7 and 2 more``."""
    ranges = _ranges(slots)
    left_out = sum(last + 1 - first for first, last in ranges[most:])
    return " ".join(map(_range_text, ranges[:most])) + (f" and {left_out} more" if left_out else "")


def _ranges(slots: Iterable[SlotId]) -> list[list[int]]:
    """The first and the last slot of each range, ascending."""
    ranges: list[list[int]] = []
    for slot in sorted(slots):
        if ranges and slot == ranges[-1][1] + 1:
            ranges[-1][1] = slot
        else:
            ranges.append([slot, slot])
    return ranges


def _range_text(bounds: list[int]) -> str:
    first, last = bounds
    return str(first) if first == last else f"{first}-{last}"


def named_slots(slots: Iterable[SlotId]) -> str:
    """Slot numbers as part of a sentence: ``slot 5``, ``slots 3, 7-9``."""
    known = set(slots)
    return f"{'slot' if len(known) == 1 else 'slots'} {slot_ranges(known, ', ')}"


def counted(count: int, noun: str) -> str:
    """A number with its noun, with a plural s where needed: ``1 slot``, ``2 slots``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
