"""Bugs in ``controlplane/core/slots/handoffs.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/test_slot_handoffs.py",)

BUGS: Final = (
    Bug(
        "the leader releases before the next one has the data",
        "elif witness.is_ready(slot_id, next_leader, _ANY if next_leader in now.replicas else handoff.began_epoch):",
        "elif True:",
        tests=_TESTS,
    ),
    Bug(
        "the next leader leads before the leader has released",
        "            if released is None:",
        "            if False:",
        tests=_TESTS,
    ),
    Bug(
        "a copy is waited for without end",
        "elif now_ms - handoff.began_at_ms >= copy_limit_ms:",
        "elif False:",
        tests=_TESTS,
    ),
    Bug(
        "a handoff goes on with a new process of the next leader, which has no data",
        "        and row.leader in witness.survivors\n",
        "",
        tests=_TESTS,
    ),
    Bug(
        "a leader whose former process may still serve is told to release",
        "            if witness.may_release(leader):",
        "            if True:",
        tests=_TESTS,
    ),
    Bug(
        "nodes of before are told to release",
        "return planned.leader != now.leader and now.leader in witness.survivors and planned.leader in witness.living",
        "return None not in (planned.leader, now.leader) and planned.leader != now.leader",
        tests=_TESTS,
    ),
)
