"""The command line of a benchmark: its options, and ``--smallest``."""

import argparse
from collections.abc import Mapping, Sequence


def parsed(
    parser: argparse.ArgumentParser, smallest: Mapping[str, object], arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """The options of a call, with ``--smallest`` among them.

    A run at the smallest size takes seconds. It shows that the benchmark works; its figures have no meaning.

    Args:
        parser: with all other options.
        smallest: the values that ``--smallest`` puts in place of the defaults; an option that is given still counts.
        arguments: the words of the command line; None takes those of the process.
    """
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="run at the smallest size, in seconds: this shows that the benchmark works, and measures nothing",
    )
    if parser.parse_known_args(arguments)[0].smallest:
        parser.set_defaults(**smallest)
    return parser.parse_args(arguments)
