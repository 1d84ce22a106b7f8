"""How much a run of the tests tries: what each change waits for, or all that there is (``make thorough``)."""

import os
from typing import Final, TypeVar

IS_THOROUGH: Final = "CONTROLPLANE_TEST_THOROUGH" in os.environ

T = TypeVar("T")


def sized(each_change: T, thorough: T) -> T:
    """The size for this run, chosen when a module is imported.

    Args:
        each_change: enough to meet every case that the test has to meet.
        thorough: what a change of the rule itself has to pass.
    """
    return thorough if IS_THOROUGH else each_change
