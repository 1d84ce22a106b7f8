"""Bugs in ``controlplane/node/slot_releases.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/node/test_slot_releases.py",)

BUGS: Final = (
    Bug(
        "a release is said while requests that were accepted still run",
        "            if release.is_told and slot_id not in self._accepted:",
        "            if release.is_told:",
        tests=_TESTS,
    ),
    Bug(
        "a release is said before its callbacks have returned",
        "            if release.is_told and slot_id not in self._accepted:",
        "            if slot_id not in self._accepted:",
        tests=_TESTS,
    ),
    Bug(
        "a part of a slot does not wait for the requests of the whole",
        "            self._accepted[part].add(call)",
        "            pass",
        tests=_TESTS,
    ),
    Bug(
        "a request is not voided when its slot is lost",
        "        if not leads:\n            self._void(slot.slot_id)",
        "        pass",
        tests=_TESTS,
    ),
    Bug(
        "a request holds a release up without end",
        "            if now_ms >= release.since_ms + self._accepted_limit_ms:",
        "            if False:",
        tests=_TESTS,
    ),
)
