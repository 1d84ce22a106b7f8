"""Bugs in ``controlplane/core/deciding/consent.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py", "unit/core/deciding/test_slot_handoffs.py")

BUGS: Final = (
    Bug(
        "a new process says for the former one that it has released something",
        "    if not node.replaced_epoch:\n        return False",
        "    if True:\n        return False",
        tests=_TESTS,
    ),
    Bug(
        "what is not released is taken at once",
        "passed_ms >= bound_ms else",
        "passed_ms >= 0 else",
        tests=_TESTS,
    ),
    Bug(
        "a silent owner that lives is waited for without end",
        "if passed_ms >= bound_ms else",
        "if False else",
        tests=_TESTS,
    ),
    Bug(
        "the time after which readers leave a broker that does not know better is not waited for",
        " + METADATA_REFRESH_MS",
        "",
        tests=("unit/test_fencing_page.py",),
    ),
)
