"""Bugs in ``controlplane/kafka_rules/broker_sessions.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_PAGE: Final = ("unit/test_fencing_page.py",)

BUGS: Final = (
    Bug(
        "a transaction may stay open for 50 s beyond a broker's session",
        "_BEYOND_SESSION_MS: Final = 5_000",
        "_BEYOND_SESSION_MS: Final = 50_000",
        tests=_PAGE,
    ),
    Bug(
        "a longer broker session is recommended than the bounds assume",
        "    BROKER_SESSION: 3_000,",
        "    BROKER_SESSION: 8_000,",
        tests=_PAGE,
    ),
    Bug(
        "with one broker a transaction may stay open for as long as with several",
        "if brokers <= 1:",
        "if brokers < 1:",
        tests=("unit/kafka_rules/test_broker_sessions.py",),
    ),
)
