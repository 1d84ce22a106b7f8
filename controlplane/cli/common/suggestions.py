"""What a mistyped name may stand for."""

import difflib
from collections.abc import Collection
from typing import Final

_MOST_LISTED: Final = 10


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The known names that are like this one, as a question; or else, of a cluster, the names that it knows."""
    alike = difflib.get_close_matches(name, sorted(known), n=3)
    if alike:
        return f"did you mean {' or '.join(repr(each) for each in alike)}?"
    if not known:
        return "it knows none yet."
    if len(known) <= _MOST_LISTED:
        return f"it knows {', '.join(sorted(known))}."
    return f"of the {len(known):,} that it knows none is like it."
