"""Bugs in ``controlplane/node/slot_releases.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/node/test_slot_releases.py",)

BUGS: Final = (
    Bug(
        "a service is asked to release a slot while requests that were accepted still run",
        "if release.is_told and not release.is_asked and not release.is_done and slot_id not in self._accepted:",
        "if release.is_told and not release.is_asked and not release.is_done:",
        tests=_TESTS,
    ),
    Bug(
        "a service is asked to release a slot before it was told of the row",
        "if release.is_told and not release.is_asked and not release.is_done and slot_id not in self._accepted:",
        "if not release.is_asked and not release.is_done and slot_id not in self._accepted:",
        tests=_TESTS,
    ),
    Bug(
        "a release is said before the service has released the slot",
        "            if release.is_done:\n                by_epoch",
        "            if release.is_asked:\n                by_epoch",
        tests=_TESTS,
    ),
    Bug(
        "a slot that stays is served although the service may have closed it",
        "                self._reopening[slot.slot_id] = epoch",
        "                pass",
        tests=_TESTS,
    ),
    Bug(
        "a slot that stays is not served again",
        "                del self._reopening[slot_id]",
        "                pass",
        tests=_TESTS,
    ),
    Bug(
        "a part of a slot does not wait for the requests of the whole",
        "            self._accepted[part].add(request)",
        "            pass",
        tests=_TESTS,
    ),
    Bug(
        "a request is not voided when its slot is lost",
        "            self._reopening.pop(slot.slot_id, None)\n            self.void(slot.slot_id)",
        "            self._reopening.pop(slot.slot_id, None)",
        tests=_TESTS,
    ),
    Bug(
        "a request holds a release up without end",
        "            if now_ms >= void_at_ms and slot_id in self._accepted:",
        "            if False:",
        tests=_TESTS,
    ),
    Bug(
        "a service that does not release a slot holds it up without end",
        "            if now_ms >= give_up_at_ms:",
        "            if False:",
        tests=_TESTS,
    ),
)
