"""Keeps the demo's processes after the demo itself has ended, and ends them in order on SIGTERM.

Run by path as ``python holder.py FD:PID,FD:PID... FD:PID...``, with the standard library only. Each pair is the writing
end of a keeper's standard input (see ``controlplane/embedded/keeper.py``) and the keeper's process id. Each argument is
a group of processes that end together. On SIGTERM the groups end in the given order. If the holder dies, all pipes
close and all processes end.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence

LONGEST_END_S = 40.0
"""For one group; longer than the time after which a keeper kills its process."""


def hold(groups: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Wait for SIGTERM (or SIGINT), then end the groups one after the other."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    for group in groups:
        for descriptor, _ in group:
            os.close(descriptor)
        deadline = time.monotonic() + LONGEST_END_S
        while any(_lives(process_id) for _, process_id in group) and time.monotonic() < deadline:
            time.sleep(0.05)


def parse_group(word: str) -> list[tuple[int, int]]:
    """The pairs of a group, each the descriptor and the process id."""
    pairs = [pair.split(":") for pair in word.split(",")]
    return [(int(descriptor), int(process_id)) for descriptor, process_id in pairs]


def _lives(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another process has the number by now
    return not _is_zombie(process_id)


def _is_zombie(process_id: int) -> bool:
    """Whether the process has ended and its parent has not waited for it yet; False without /proc."""
    try:
        with open(f"/proc/{process_id}/stat", encoding="utf-8") as status:  # noqa: PTH123 - no imports beyond need
            return status.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


if __name__ == "__main__":
    hold([parse_group(word) for word in sys.argv[1:]])
