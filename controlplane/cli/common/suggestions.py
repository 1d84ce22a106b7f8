"""Suggestions for a mistyped name."""

import difflib
from collections.abc import Collection
from typing import Final

_MOST_LISTED: Final = 10


def suggestion(name: str, known: Collection[str]) -> str:
    """The known names that are similar to this one, as a question; empty if none is."""
    similar = difflib.get_close_matches(name, sorted(known), n=3)
    return f"did you mean {' or '.join(repr(each) for each in similar)}?" if similar else ""


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The similar known names; if there are none, the names that the cluster knows."""
    similar = suggestion(name, known)
    if similar:
        return similar
    if not known:
        return "it knows none yet."
    if len(known) <= _MOST_LISTED:
        return f"it knows {', '.join(sorted(known))}."
    return f"none of the {len(known):,} that it knows is similar."
