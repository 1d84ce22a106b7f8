"""``--policy name=value``."""

import dataclasses

import pytest

from controlplane.cli.policy_option import parse_policy
from controlplane.core.plain import to_plain
from controlplane.core.policy import HashFunction, Policy
from controlplane.errors import ConfigurationError


def test_every_setting_can_be_given_by_name() -> None:
    """A policy written out setting by setting is the same policy: no field is out of reach, none changes its type."""
    wanted = Policy(
        slot_count=1024,
        replica_count=3,
        hash_function=HashFunction.MD5,
        silence_limit_ms=4_000,
        join_linger_ms=0,
        positions_interval_ms=1_000,
        protected_ratio=1,
        protection_window_ms=0,
        bundles_per_namespace=16,
    )
    plain = to_plain(wanted)
    assert isinstance(plain, dict)
    assert set(plain) == {field.name for field in dataclasses.fields(Policy)}
    assert all(plain[name] != value for name, value in to_plain(Policy()).items())  # type: ignore[union-attr]  # a map
    assert parse_policy([f"{name}={value}" for name, value in plain.items()]) == wanted


@pytest.mark.parametrize(
    "setting", ["slots=5", "slot_count", "slot_count=many", "slot_count=1.5", "slot_count=100", "hash_function=sha1"]
)
def test_wrong_setting_is_refused_by_name(setting: str) -> None:
    """A typing error must not create a cluster with the default instead."""
    with pytest.raises(ConfigurationError, match=setting.partition("=")[0]):
        parse_policy([setting])
