"""Which programs run below a process."""

import subprocess
import sys

import psutil

from tests.helpers.polling import poll_until
from tests.helpers.running_programs import running_programs

FORKS_AND_STARTS = """if True:
    import os, subprocess, sys, time
    if os.fork():
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    time.sleep(60)
"""


def test_a_fork_is_no_program_of_its_own() -> None:
    """It has its parent's command line until it becomes another program."""
    with subprocess.Popen([sys.executable, "-c", FORKS_AND_STARTS]) as process:
        root = psutil.Process(process.pid)
        try:
            poll_until(lambda: len(root.children()) == 2 and len(list(running_programs(root))) == 2, 20)
            (first, _), (second, words) = running_programs(root)
            assert (first, second in root.children()) == (root, True)
            assert words[-1] == "import time; time.sleep(60)"
        finally:
            for each in [*root.children(), root]:
                each.kill()
