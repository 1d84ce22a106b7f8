"""The example in the package's docstring is true."""

import doctest

from controlplane import testing


def test_the_example_of_the_package_runs_as_written() -> None:
    """An example with other results than those that it shows fails."""
    result = doctest.testmod(testing)
    assert result.attempted > 0
    assert result.failed == 0
