"""Bugs in ``controlplane/adapters/kafka_admin.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("embedded/test_topics_on_broker.py",)

BUGS: Final = (
    Bug(
        "topics get as few copies as there are brokers",
        "wanted = spec.replication if least_copies is None else min(least_copies, spec.replication)",
        "wanted = 1",
        tests=_TESTS,
    ),
    Bug(
        "a missing topic hides the broken promises of the others",
        '"\\n".join([head, *_lines(cluster, judgement)])',
        "head",
        tests=("unit/adapters/test_kafka_admin.py",),
    ),
)
