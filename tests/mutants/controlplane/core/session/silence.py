"""Bugs in ``controlplane/core/session/silence.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("properties/test_silence.py",)

BUGS: Final = (
    Bug(
        "a margin that a node asks for may be as long as the silence limit",
        "min(margin_ms, silence_limit_ms // _MOST_MARGIN_DIVISOR)",
        "min(margin_ms, silence_limit_ms)",
        tests=_TESTS,
    ),
    Bug(
        "the margin is a sixteenth of the silence limit",
        "LEAST_MARGIN_DIVISOR: Final = 9",
        "LEAST_MARGIN_DIVISOR: Final = 16",
        tests=_TESTS,
    ),
    Bug(
        "a silence limit is advised without the margin of long limits",
        "max(needed_ms + margin_ms, -(-needed_ms * LEAST_MARGIN_DIVISOR // (LEAST_MARGIN_DIVISOR - 1)))",
        "needed_ms + margin_ms",
        tests=_TESTS,
    ),
)
