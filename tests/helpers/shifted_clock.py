"""Wall clocks of servers that a test sets forward and back, also while they run.

``shifted_clock.c`` is compiled where a C compiler is found and preloaded into a server, whose wall clock alone it
shifts. (libfaketime, which shifts monotonic clocks as well, makes a JVM hang at its start.)
"""

import shutil
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_name("shifted_clock.c")
_COMPILERS = ("cc", "gcc", "clang")


def why_no_shifted_clocks() -> str | None:
    """Why clocks cannot be shifted here, or None when they can; a test that needs them is skipped with this reason."""
    if not sys.platform.startswith("linux"):
        return f"clocks of servers are shifted by LD_PRELOAD, which {sys.platform} does not have"
    if _compiler() is None:
        return f"clocks of servers are shifted by a small C library, and none of {', '.join(_COMPILERS)} is on the PATH"
    return None


class ShiftedClock:
    """The wall clock of one server, which is right at first.

    Args:
        folder: where the library and the shift are kept; one library serves all clocks of a folder.
        name: of the clock in this folder.
    """

    def __init__(self, folder: Path, name: str) -> None:
        reason = why_no_shifted_clocks()
        assert reason is None, reason
        self._library = _compiled(folder)
        self._shift_file = folder / f"{name}.shift"
        self._shift_file.write_bytes(struct.pack("=q", 0))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the server."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_SHIFT_FILE": str(self._shift_file)}

    def shift(self, milliseconds: int) -> None:
        """Set the clock this much forward of the machine's, back where negative; a running server sees it at once."""
        # Written in place: the server has mapped this file, and would not see another one of the same name.
        with self._shift_file.open("r+b") as file:
            file.write(struct.pack("=q", milliseconds))


def shifted_clocks(folder: Path, brokers: int) -> dict[int, ShiftedClock]:
    """A clock for each of the brokers 1 to N, by id; empty where clocks cannot be shifted."""
    if why_no_shifted_clocks() is not None:
        return {}
    return {broker: ShiftedClock(folder, f"broker-{broker}") for broker in range(1, brokers + 1)}


@cache
def _compiler() -> str | None:
    return next((found for name in _COMPILERS if (found := shutil.which(name)) is not None), None)


@cache
def _compiled(folder: Path) -> Path:
    library = folder / "shifted_clock.so"
    compiler = _compiler()
    assert compiler is not None
    command = [compiler, "-O1", "-Wall", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library
