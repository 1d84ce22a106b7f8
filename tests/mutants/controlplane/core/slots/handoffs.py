"""Bugs in ``controlplane/core/slots/handoffs.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/test_slot_handoffs.py",)

BUGS: Final = (
    Bug(
        "the leader releases before the next one has the data",
        "is_ready = witness.is_ready(now.slot_id, next_leader, handoff.began_epoch)",
        "is_ready = True",
        tests=_TESTS,
    ),
    Bug(
        "a follower's report of before it was fenced, or of a former table, counts",
        "since = moment.table_epoch if is_shown else moment.epoch",
        "since = Epoch(0) if is_shown else moment.epoch",
        tests=_TESTS,
    ),
    Bug(
        "what moves without its data is taken from a leader that was not told to release it",
        "    if not goes_by_handoff(now, row, witness):",
        "    if not goes_by_handoff(now, row, witness) or (\n"
        "        under_way is not None and moment.now_ms - under_way.began_at_ms >= moment.copy_limit_ms\n"
        "    ):",
        tests=_TESTS,
    ),
    Bug(
        "the next leader leads before the leader has released",
        "        if released is None:\n            return Step(releasing)\n",
        "        if released is None:\n            return Step()\n",
        tests=_TESTS,
    ),
    Bug(
        "a copy is waited for without end",
        "if not is_ready and moment.now_ms - handoff.began_at_ms < moment.copy_limit_ms:",
        "if not is_ready:",
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
        "if not witness.may_release(leader):",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "nodes of before are told to release",
        "return planned.leader != now.leader and now.leader in witness.survivors and planned.leader in witness.living",
        "return None not in (planned.leader, now.leader) and planned.leader != now.leader",
        tests=_TESTS,
    ),
)
