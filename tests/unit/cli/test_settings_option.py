"""``--policy name=value`` and its like."""

import dataclasses

import pytest

from controlplane.cli.common.settings_option import parse_settings
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction, ZoneRule
from controlplane.core.values.canonical import to_canonical
from controlplane.errors import ConfigurationError


def test_every_setting_can_be_given_by_name() -> None:
    """A policy written out setting by setting is the same policy: no field is out of reach, none changes its type."""
    wanted = ClusterPolicy(
        slot_count=1024,
        replica_count=3,
        hash_function=HashFunction.MD5,
        silence_limit_ms=4_000,
        join_linger_ms=0,
        positions_interval_ms=1_000,
        protected_ratio=1,
        protection_window_ms=0,
        bundles_per_namespace=16,
        slot_policy="sofa",
        slot_policy_options={"threshold_percent": "5"},
        zone_rule=ZoneRule.HARD,
        replicas_per_zone=2,
        tolerance_percent=10,
        moves_in_flight=3,
        cool_down_ms=1_000,
        return_window_ms=0,
        intent_rights={"ops-*": "drain_node, undrain_node"},
        forget_nodes_after_ms=60_000,
        bundle_moves_in_flight=0,
        handoff_limit_ms=2_000,
        copy_limit_ms=60_000,
    )
    plain = to_canonical(wanted)
    assert isinstance(plain, dict)
    assert set(plain) == {field.name for field in dataclasses.fields(ClusterPolicy)}
    assert all(plain[name] != value for name, value in to_canonical(ClusterPolicy()).items())  # type: ignore[union-attr]  # a map
    entries = ["slot_policy_options.threshold_percent=5", "intent_rights.ops-*=drain_node, undrain_node"]
    given = [f"{name}={value}" for name, value in plain.items() if not isinstance(value, dict)] + entries
    assert parse_settings("--policy", ClusterPolicy(), given) == wanted


@dataclasses.dataclass(frozen=True)
class _Inner:
    limit: float = 1
    enabled: bool = False


@dataclasses.dataclass(frozen=True)
class _Outer:
    inner: _Inner = dataclasses.field(default_factory=_Inner)
    interval_ms: int = 10


def test_fields_of_nested_settings_have_dotted_names() -> None:
    """The pipeline's rules are settings within settings."""
    chosen = parse_settings("--rule", _Outer(), ["inner.limit=2.5", "inner.enabled=true", "interval_ms=7"])
    assert chosen == _Outer(_Inner(2.5, enabled=True), 7)
    with pytest.raises(ConfigurationError, match=r"--rule 'inner=1'.*inner\.limit"):
        parse_settings("--rule", _Outer(), ["inner=1"])


@pytest.mark.parametrize(
    "setting", ["slots=5", "slot_count", "slot_count=many", "slot_count=1.5", "slot_count=100", "hash_function=sha1"]
)
def test_wrong_setting_is_refused_by_name(setting: str) -> None:
    """A typing error must not create a cluster with the default instead."""
    with pytest.raises(ConfigurationError, match=setting.partition("=")[0]):
        parse_settings("--policy", ClusterPolicy(), [setting])
