"""The keeper ends what it keeps as soon as nobody is there who could."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from controlplane.embedded import keeper
from tests.helpers.polling import poll_until

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_starter_that_was_interrupted_before_it_read_the_process_id_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ctrl-C may fall between the start of a keeper and its first line: both pipes close, and nobody has the number."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, str(tmp_path / "log"), "5", *SLEEPS],
        stdin=subprocess.PIPE,
        stdout=write_end,
    ) as keeping:
        os.close(write_end)
        poll_until(psutil.Process(keeping.pid).children, 10)
        [kept] = psutil.Process(keeping.pid).children()
        assert keeping.stdin is not None
        keeping.stdin.close()
        assert psutil.wait_procs([kept], timeout=10) == ([kept], [])
        assert keeping.wait(10) == 128 + 15
    assert (tmp_path / "log").read_bytes() == b""
