"""Identifiers of versions that Java reads as numbers with a sign."""

import pytest

from controlplane.core.bundles.placement.version import Version, compare_releases, parse_version


def parsed(text: str) -> Version:
    """The version of a text that is one."""
    version = parse_version(text)
    assert version is not None
    return version


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0.0--5", "1.0.0--3"),
        ("1.0.0--10", "1.0.0--5"),
        ("1.0.0--5", "1.0.0-0"),
        ("1.0.0-2147483647", "1.0.0--5"),
        ("1.0.0--2147483649", "1.0.0-a"),
    ],
)
def test_signed_identifiers_are_numbers(older: str, newer: str) -> None:
    """A second hyphen is a sign; the difference has 32 bits, so it turns round between numbers far apart."""
    assert compare_releases(parsed(older), parsed(newer)) < 0
    assert compare_releases(parsed(newer), parsed(older)) > 0
