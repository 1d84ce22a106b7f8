"""The entry point. It imports the command only after it has checked that the required packages are installed."""

import importlib.util
import sys

from controlplane.errors import MissingExtraError

NEEDED_PACKAGES = ("click", "rich", "tenacity")


def main() -> None:
    """Run the command line and end the process with its exit status.

    0: done. 1: failed. 2: usage error. 3: Kafka, Redis or a leader could not be reached, or a wait timed out.
    130: interrupted.
    """
    if any(importlib.util.find_spec(package) is None for package in NEEDED_PACKAGES):
        sys.stderr.write(f"{MissingExtraError('cli', 'the controlplane command')}\n")
        sys.exit(1)
    from controlplane.cli.root import run

    sys.exit(run(sys.argv[1:]))
