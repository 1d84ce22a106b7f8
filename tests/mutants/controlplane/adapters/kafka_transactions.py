"""Bugs in ``controlplane/adapters/kafka_transactions.py``, which simulated brokers do not run."""

from typing import Final

from tests.mutants.mutant import Bug

_CONTRACT: Final = "contracts/test_log_kafka.py::TestKafkaTransactionalWriter"
_BARRIERS: Final = ("contracts/test_kafka_barriers.py",)

BUGS: Final = (
    Bug(
        "a barrier is aborted before it is acknowledged",
        "waiting, refused = self._acknowledged(producer)",
        "waiting, refused = 0, None",
        tests=_BARRIERS,
    ),
    Bug(
        "a barrier is committed",
        "outcome = CommitOutcome.UNKNOWN if waiting and refused is None else self._abort(producer, refused)",
        "outcome = self._end(producer, self._commit_timeout_s)",
        tests=_BARRIERS,
    ),
    Bug(
        "offsets of a former transaction are told for a barrier",
        "        self.offsets.clear()",
        "        pass",
        tests=(f"{_CONTRACT}::test_a_barrier_is_behind_the_records_of_its_own_transaction_alone",),
    ),
    Bug(
        "a writer that was fenced takes its barrier for written",
        "if outcome is CommitOutcome.FENCED:",
        "if False:",
        tests=(f"{_CONTRACT}::test_a_fenced_writer_writes_no_barrier",),
    ),
)
