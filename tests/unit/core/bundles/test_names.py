"""Names of namespaces."""

import pytest

from controlplane.core.bundles.names import check_namespace_name
from controlplane.errors import ConfigurationError


@pytest.mark.parametrize("name", ["kv", "t/n", "Public/default", "t/c/n", "public/__kafka", "a=b:c/d.e_f-g", "x" * 127])
def test_names_of_one_to_three_parts(name: str) -> None:
    """A tenant's namespace, one of an earlier version with its cluster, and one without a tenant."""
    check_namespace_name(name)


@pytest.mark.parametrize(
    "name", ["", "/", "t/", "/n", "t//n", "a/b/c/d", "A B", "t/-n", "--cluster", "t/..", "é/n", "t/n\n", "x" * 128]
)
def test_other_names_are_refused(name: str) -> None:
    """Among them empty parts, options of a command, and what a path would read as another folder."""
    with pytest.raises(ConfigurationError, match="take namespace or tenant/namespace or tenant/cluster/namespace"):
        check_namespace_name(name)


def test_policy_may_allow_fewer_forms() -> None:
    """Pulsar 4 has names of two parts only, Pulsar 2 also those of three."""
    check_namespace_name("t/n", (2,))
    for name in ("kv", "t/c/n"):
        with pytest.raises(ConfigurationError, match=r"take tenant/namespace, each"):
            check_namespace_name(name, (2,))
    check_namespace_name("t/c/n", (2, 3))
    with pytest.raises(ConfigurationError, match="take tenant/namespace or tenant/cluster/namespace, each"):
        check_namespace_name("kv", (2, 3))
