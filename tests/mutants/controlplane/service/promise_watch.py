"""Bugs in ``controlplane/service/promise_watch.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/service/test_promise_watch.py",)

BUGS: Final = (
    Bug(
        "settings are looked at once an hour",
        "LOOK_EVERY_MS: Final = 30_000",
        "LOOK_EVERY_MS: Final = 3_600_000",
        tests=_TESTS,
    ),
    Bug(
        "settings that were changed end no controller",
        "if confirmed:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "one look at a changed setting ends a controller",
        "if confirmed:",
        "if found.broken:",
        tests=_TESTS,
    ),
    Bug(
        "settings that cannot be read end a controller",
        "except (RetryableError, ConfigurationError) as error:",
        "except ZeroDivisionError as error:",
        tests=_TESTS,
    ),
)
