"""Bugs in ``controlplane/core/slots/ring/text_hash.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/slots/test_hash_ring.py",)

BUGS: Final = (
    Bug(
        "hashes are unsigned",
        "return unsigned if unsigned < _SIGN_BIT else unsigned - _TWO_TO_64",
        "return unsigned",
        ("hash",),
    ),
    Bug(
        "texts are hashed as big-endian units",
        'text.encode("utf-16-le", "surrogatepass")',
        'text.encode("utf-16-be", "surrogatepass")',
        ("hash",),
    ),
    Bug(
        "a node has one place too few",
        "PLACES_PER_NODE: Final = 500",
        "PLACES_PER_NODE: Final = 499",
        ("buckets",),
    ),
    Bug(
        "names of virtual nodes have a separator",
        'return f"{node}{index}"',
        'return f"{node}-{index}"',
        ("buckets",),
    ),
    Bug(
        "names are compared by characters",
        'return text.encode("utf-16-be", "surrogatepass")',
        'return text.encode("utf-8", "surrogatepass")',
        ("lookup",),
        _TESTS,
    ),
)
