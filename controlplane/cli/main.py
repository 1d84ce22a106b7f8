"""The entry point: it imports the command only after it knows that what the command needs is installed."""

import importlib.util
import sys

from controlplane.errors import MissingExtraError

NEEDED_PACKAGES = ("click", "rich", "tenacity")


def main() -> None:
    """Run the command line and end the process with its exit status.

    0: done. 1: failed. 2: called wrongly. 3: Kafka, Redis or a leader could not be reached, or a wait was
    too short. 130: interrupted.
    """
    if any(importlib.util.find_spec(package) is None for package in NEEDED_PACKAGES):
        sys.stderr.write(f"{MissingExtraError('cli', 'the controlplane command')}\n")
        sys.exit(1)
    from controlplane.cli.root import run

    sys.exit(run(sys.argv[1:]))
