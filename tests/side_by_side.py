"""Which tests with servers one process runs, where several run side by side; loaded by ``tests/conftest.py``.

A process runs the tests of a file one after the other, as fixtures of a module want it. Files that share what is slow
to start are taken for one: the broker that asks for logins, the installed wheel's cluster. Not those of the Spark
session: all of them in one process would take longer than all other tests take together in the other processes.
"""

from collections.abc import Sequence
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

SHARING: Final[Sequence[tuple[str, ...]]] = (
    ("tests/security/",),
    ("tests/packaging/", "tests/readme/"),
)
"""Beginnings of paths, those of each group together."""


def group_of(nodeid: str) -> str:
    """The tests of one process have this in common: the first path of their group, or their file."""
    file = nodeid.partition("::")[0]
    return next((group[0] for group in SHARING if file.startswith(group)), file)


class SharedServersScheduling(LoadFileScheduling):  # type: ignore[misc]  # a library without types
    """Gives a process whole files, and all files of a group, in the order of the tests: the longest first."""

    def _split_scope(self, nodeid: str) -> str:
        """See :func:`group_of`."""
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedServersScheduling | None:
    """Stand in for ``--dist loadfile``.

    The marker ``xdist_group`` would say the same, but ``--dist loadgroup`` of pytest-xdist 3.8 does not see it under
    pytest 9.2: every test would be given out alone.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # it would begin with the files of the most tests, not of the longest
    return SharedServersScheduling(config, log)
