"""What embedding the agent or the client does to the program around it."""

import subprocess
import sys

PROGRAM = """
import logging
{before}
import structlog
from controlplane.bootstrap.members import log_through_the_standard_library
log_through_the_standard_library()
log = structlog.get_logger("controlplane.test").bind(node="n1")
log.debug("quiet")
log.warning("loud")
print("result")
"""


def run(before: str) -> subprocess.CompletedProcess[str]:
    """Run the program with some set-up in front."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True, timeout=60
    )


def test_standard_output_belongs_to_the_program() -> None:
    """A program that never heard of structlog gets warnings where logging sends them, and nothing on its output."""
    done = run("")
    assert done.stdout == "result\n"
    assert "loud" in done.stderr
    assert "quiet" not in done.stderr


def test_the_program_decides_about_levels() -> None:
    """Its logging configuration is ours."""
    assert "quiet" in run("logging.basicConfig(level=logging.DEBUG)").stderr


def test_a_structlog_that_is_configured_stays_as_it_is() -> None:
    """A program that uses structlog itself has chosen already."""
    before = "import structlog; structlog.configure(processors=[structlog.processors.JSONRenderer()])"
    assert '"event": "quiet"' in run(before).stdout
