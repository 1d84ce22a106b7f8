"""Isolation policies: roles, candidates, refusals, and what a change of a policy unloads."""

from collections.abc import Sequence

import pytest

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.placement.context import ExtensibleContext, PlacementPolicies, RegisteredNode
from controlplane.core.bundles.placement.contract import BundleToPlace, Dropped
from controlplane.core.bundles.placement.isolation import (
    IsolationFilter,
    IsolationPolicies,
    IsolationPolicy,
    NodeRole,
    UnloadScope,
    host_of,
)
from controlplane.core.bundles.placement.unload_scope import namespaces_to_unload
from controlplane.errors import ConfigurationError

BUNDLE = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
NAMESPACES = ("a/1", "a/2", "b/1", "c/1")


def context(policies: Sequence[IsolationPolicy], *names: str) -> ExtensibleContext:
    """Registered nodes of these names under these policies."""
    registered = dict.fromkeys(names, RegisteredNode("1.0.0", "m"))
    return ExtensibleContext(registered, rules=PlacementPolicies(IsolationPolicies(tuple(policies))))


def policy(**changes: object) -> IsolationPolicy:
    """A policy for ``t/n`` with primary ``p*`` and secondary ``s*``."""
    given = {"name": "p", "namespaces": ("t/n",), "primary": ("p.*",), "secondary": ("s.*",), **changes}
    return IsolationPolicy(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("primaries", "kept"), [(1, ("p1:1", "p2:1")), (2, ("p1:1", "p2:1")), (3, ("p1:1", "p2:1", "s1:1"))]
)
def test_secondaries_help_only_below_the_least_number_of_primaries(primaries: int, kept: tuple[str, ...]) -> None:
    """``min_limit`` is exclusive: as many primaries as it says are enough."""
    nodes = ("p1:1", "p2:1", "s1:1", "x1:1")
    found = IsolationFilter().keep(BUNDLE, nodes, context([policy(min_primaries=primaries)], *nodes))
    assert found.kept == kept
    assert Dropped("x1:1", "shared", found.dropped[-1].limit) == found.dropped[-1]


def test_nothing_replaces_the_nodes_of_a_policy() -> None:
    """Shared nodes never help out, even if nobody else can serve the namespace."""
    found = IsolationFilter().keep(BUNDLE, ("x:1", "y:1"), context([policy()], "x:1", "y:1"))
    assert found.kept == ()
    assert {each.measured for each in found.dropped} == {"shared"}


def test_kind_of_topics_counts_only_without_a_policy() -> None:
    """A primary node serves its namespaces although it refuses their kind of topics; a shared one does not."""
    refusing = RegisteredNode("1.0.0", "m", takes_persistent_topics=False)
    isolated = ExtensibleContext({"p:1": refusing}, rules=PlacementPolicies(IsolationPolicies((policy(),))))
    assert IsolationFilter().keep(BUNDLE, ("p:1",), isolated).kept == ("p:1",)
    free = ExtensibleContext({"p:1": refusing})
    assert IsolationFilter().keep(BUNDLE, ("p:1",), free).kept == ()
    non_persistent = BundleToPlace(BUNDLE.bundle_id, BUNDLE.history, has_non_persistent_topic=True)
    assert IsolationFilter().keep(non_persistent, ("p:1", "unknown:1"), free).kept == ("p:1",)


def test_first_policy_of_a_namespace_counts() -> None:
    """A second policy for the namespace changes nothing, except that its primaries are not shared."""
    first, second = policy(namespaces=("t/.*",)), policy(name="q", primary=("x.*",))
    policies = IsolationPolicies((first, second))
    assert policies.of("t/n") is first
    assert policies.of("at/n") is None
    assert policies.of("t/nn/more") is first
    assert policies.role("t/n", "x:1") is NodeRole.NONE
    assert policies.role("t/n", "s:1") is NodeRole.SECONDARY
    assert policies.role("other/n", "s:1") is NodeRole.SHARED


def test_host_is_the_name_up_to_the_last_colon() -> None:
    """An IPv6 host has colons itself."""
    assert host_of("[::1]:8080") == "[::1]"
    assert host_of("noport") == "noport"
    nodes = ("p", "p:1")
    quirk = IsolationFilter(skips_names_without_port=True)
    assert quirk.keep(BUNDLE, nodes, context([policy()], *nodes)).kept == ("p:1",)
    assert IsolationFilter().keep(BUNDLE, nodes, context([policy()], *nodes)).kept == nodes


@pytest.mark.parametrize("field", ["namespaces", "primary", "secondary"])
def test_expression_that_does_not_compile_is_refused_by_name(field: str) -> None:
    """An operator finds the expression and the policy in the message; nothing is placed by half a policy."""
    with pytest.raises(ConfigurationError, match=r"policy p, .*'\(b'"):
        policy(**{field: ("a", "(b")})


@pytest.mark.parametrize(
    ("expression", "difference"),
    [
        ("broker-[a-z&&[^b]]", "an intersection of classes"),
        ("[a-z&&b]", "an intersection of classes"),
        ("[a-c[0-9]]", "a class inside a class"),
        ("[[:alpha:]]", "a class inside a class"),
        ("[^][]", "a class inside a class"),
        ("b{,2}", "a brace"),
        ("b{2", "a brace"),
        ("{x}", "a brace"),
        ("(?P<zone>a)", "the group '(?P<'"),
        ("(?x)a b", "the group '(?x)'"),
        ("(?u)a", "the group '(?u)'"),
        ("(?#comment)a", "the group '(?#c'"),
        ("(a)(?(1)b|c)", r"the group '(?(1'"),
        (r"a\Z", r"the escape \Z"),
        (r"a\v", r"the escape \v"),
        (r"(a)\10", r"the escape \10"),
        (r"[\b]", r"the escape \b in a class"),
    ],
)
def test_expression_that_java_reads_differently_is_refused_by_name(expression: str, difference: str) -> None:
    """A policy of Pulsar would name other nodes here than there."""
    with pytest.raises(ConfigurationError, match="Java and Python read differently") as refused:
        policy(primary=(expression,))
    assert difference in str(refused.value)
    assert repr(expression) in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (r"\[::1\]", "[::1]"),
        ("[]a]{1,2}", "]a"),
        ("[^]a]+", "bb"),
        (r"[\]&]", "&"),
        (r"[a\[]{2,}", "a["),
        ("(?:a|b){3}", "aba"),
        ("(?i)EAST", "east"),
        (r"\{\d\}", "{1}"),
        ("a&&b", "a&&b"),
        (r"(a)\1(?=b)b(?<!c)", "aab"),
    ],
)
def test_expressions_that_both_read_alike_are_taken(expression: str, name: str) -> None:
    """Escaped braces and brackets, repetitions and groups that do not capture."""
    assert policy(primary=(expression,)).is_primary(f"{name}:8080")


def test_repetition_too_large_for_python_is_refused() -> None:
    """It is an error of Java's, too."""
    with pytest.raises(ConfigurationError, match="is not a regular expression"):
        policy(primary=("a{99999999999}",))


def test_digits_are_ascii_as_in_java() -> None:
    """Python's classes know other scripts' digits, Java's do not."""
    assert policy(primary=(r"p\d",)).is_primary("p1:1")
    assert not policy(primary=(r"p\d",)).is_primary("p\u0663:1")


@pytest.mark.parametrize(
    ("scope", "old", "expected"),
    [
        (UnloadScope.ALL_MATCHING, ("a/.*", "c/.*"), NAMESPACES),
        (UnloadScope.NONE, ("a/.*", "c/.*"), ()),
        (UnloadScope.CHANGED, ("a/.*", "c/.*"), ("b/1", "c/1")),
        (None, ("a/.*", "c/.*"), ("b/1", "c/1")),
        (None, ("b/.*", "a/.*"), ()),
        (UnloadScope.ALL_MATCHING, None, ("a/1", "a/2", "b/1")),
        (UnloadScope.CHANGED, None, ("a/1", "a/2", "b/1")),
        (UnloadScope.NONE, None, ()),
    ],
)
def test_scope_says_which_namespaces_are_unloaded(
    scope: UnloadScope | None, old: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    """By default only the expressions that came or went; a namespace that both policies match is not disturbed."""
    new = policy(namespaces=("a/.*", "b/.*"), unload_scope=scope)
    before = None if old is None else policy(namespaces=old)
    assert namespaces_to_unload(new, before, NAMESPACES) == expected


@pytest.mark.parametrize("scope", [UnloadScope.CHANGED, None])
def test_other_primary_nodes_unload_everything_that_matches(scope: UnloadScope | None) -> None:
    """Every namespace of the policy has to move then; another order of the same list is no change."""
    new = policy(namespaces=("a/.*", "b/.*"), primary=("p1", "p2"), unload_scope=scope)
    same = policy(namespaces=("a/.*", "c/.*"), primary=("p2", "p1"))
    assert namespaces_to_unload(new, same, NAMESPACES) == ("b/1", "c/1")
    for primary in (("p1",), ("p1", "p2", "p2"), ("p1", "p3")):
        other = policy(namespaces=("a/.*", "c/.*"), primary=primary)
        assert namespaces_to_unload(new, other, NAMESPACES) == NAMESPACES


def test_no_scope_wins_over_other_primary_nodes() -> None:
    """An operator who wants nothing unloaded gets nothing unloaded."""
    new = policy(unload_scope=UnloadScope.NONE, primary=("x",))
    assert namespaces_to_unload(new, policy(), ("t/n",)) == ()


def test_unloading_matches_names_in_full() -> None:
    """``a/1`` does not mean ``a/10``."""
    assert namespaces_to_unload(policy(namespaces=("a/1",)), None, ("a/1", "a/10", "xa/1")) == ("a/1",)
