"""The option that writes scenarios anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take ``--rewrite``; it is known where this folder is named on the command line."""
    parser.addoption("--rewrite", action="store_true", help="write the present output into tests/scenarios/*.txt")
