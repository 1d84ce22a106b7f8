"""Isolation policies: which nodes may serve which namespaces (Pulsar's NamespaceIsolationPolicies).

A policy reserves its primary nodes for its namespaces. Namespaces without a policy use the shared nodes: those that no
policy names as primary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, Protocol

from controlplane.core.bundles.placement.contract import BundleToPlace, Dropped, Filtering
from controlplane.core.bundles.placement.java_expressions import difference_to_java
from controlplane.errors import ConfigurationError

FILTER_NAME: Final = "isolation"


class NodeRole(Enum):
    """What a node is to a namespace."""

    PRIMARY = "primary"
    """Named first by the namespace's policy."""
    SECONDARY = "secondary"
    """Named by the namespace's policy as a substitute."""
    SHARED = "shared"
    """Primary for no policy."""
    NONE = "none"
    """Reserved for other namespaces."""


class UnloadScope(Enum):
    """Which namespaces are unloaded when a policy is written (PIP-369)."""

    ALL_MATCHING = "all_matching"
    NONE = "none"
    CHANGED = "changed"


def compiled(expressions: Sequence[str], where: str) -> tuple[re.Pattern[str], ...]:
    r"""Compile regular expressions, in which classes such as ``\d`` mean ASCII, as in Java.

    Raises:
        ConfigurationError: an expression is not valid, or Java reads it differently.
    """
    return tuple(_compiled(expression, where) for expression in expressions)


def _compiled(expression: str, where: str) -> re.Pattern[str]:
    difference = difference_to_java(expression)
    if difference is not None:
        message = f"{where} holds {expression!r}, which Java and Python read differently: {difference}"
        raise ConfigurationError(message)
    try:
        return re.compile(expression, re.ASCII)
    except (re.error, OverflowError) as error:
        message = f"{where} holds {expression!r}, which is not a regular expression: {error}"
        raise ConfigurationError(message) from error


def matches_any(patterns: Sequence[re.Pattern[str]], name: str) -> bool:
    """Whether an expression matches the whole name."""
    for pattern in patterns:  # noqa: SIM110 - any() with a generator takes twice the time, for each node and request
        if pattern.fullmatch(name):
            return True
    return False


def host_of(node_id: str) -> str:
    """The part of a node's name that expressions are matched with: up to the last colon, so IPv6 hosts stay whole."""
    host, colon, _ = node_id.rpartition(":")
    return host if colon else node_id


@dataclass(frozen=True)
class IsolationPolicy:
    """One policy.

    Attributes:
        name: its name.
        namespaces: regular expressions; the policy holds for a namespace that one of them matches in full.
        primary: regular expressions of the hosts that serve these namespaces.
        secondary: regular expressions of the hosts that help out.
        min_primaries: with fewer primary nodes available, secondary nodes are candidates too (``min_limit`` of
            Pulsar's ``min_available``).
        unload_scope: what is unloaded when the policy is written; None is as ``CHANGED``.
    """

    name: str
    namespaces: tuple[str, ...]
    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    min_primaries: int = 1
    unload_scope: UnloadScope | None = None

    def __post_init__(self) -> None:
        """Refuse expressions that do not compile.

        Raises:
            ConfigurationError: an expression is not valid.
        """
        _ = self.namespace_patterns, self._primary_patterns, self._secondary_patterns

    @cached_property
    def namespace_patterns(self) -> tuple[re.Pattern[str], ...]:
        """The compiled expressions of its namespaces."""
        return compiled(self.namespaces, f"isolation policy {self.name}, namespaces")

    @cached_property
    def _primary_patterns(self) -> tuple[re.Pattern[str], ...]:
        return compiled(self.primary, f"isolation policy {self.name}, primary")

    @cached_property
    def _secondary_patterns(self) -> tuple[re.Pattern[str], ...]:
        return compiled(self.secondary, f"isolation policy {self.name}, secondary")

    def is_primary(self, node_id: str) -> bool:
        """Whether the node is primary for its namespaces."""
        return matches_any(self._primary_patterns, host_of(node_id))

    def is_secondary(self, node_id: str) -> bool:
        """Whether the node is secondary for its namespaces. A node can be both; then it is primary."""
        return matches_any(self._secondary_patterns, host_of(node_id))

    def needs_secondaries(self, primary_count: int) -> bool:
        """Whether secondary nodes are candidates beside so many available primary ones."""
        return primary_count < self.min_primaries


@dataclass(frozen=True)
class IsolationPolicies:
    """All policies; the first one that holds for a namespace counts."""

    policies: tuple[IsolationPolicy, ...] = ()

    def of(self, namespace: str) -> IsolationPolicy | None:
        """The policy of a namespace."""
        holding = (each for each in self.policies if matches_any(each.namespace_patterns, namespace))
        return next(holding, None)

    def is_shared(self, node_id: str) -> bool:
        """Whether no policy names the node as primary."""
        return not matches_any(self._primary_patterns, host_of(node_id))

    @cached_property
    def _primary_patterns(self) -> tuple[re.Pattern[str], ...]:
        expressions = (expression for policy in self.policies for expression in policy.primary)
        return compiled(tuple(dict.fromkeys(expressions)), "isolation policies, primary")

    def role(self, namespace: str, node_id: str) -> NodeRole:
        """What the node is to the namespace."""
        policy = self.of(namespace)
        if policy is not None and policy.is_primary(node_id):
            return NodeRole.PRIMARY
        if policy is not None and policy.is_secondary(node_id):
            return NodeRole.SECONDARY
        return NodeRole.SHARED if self.is_shared(node_id) else NodeRole.NONE


NO_ISOLATION: Final = IsolationPolicies()


class _Rules(Protocol):
    @property
    def isolation(self) -> IsolationPolicies: ...


class IsolationFacts(Protocol):
    """What this filter asks of a context."""

    @property
    def rules(self) -> _Rules:
        """What operators have set."""
        ...

    def takes(self, node_id: str, *, non_persistent: bool) -> bool:
        """Whether the node serves topics of this kind."""
        ...


@dataclass(frozen=True, slots=True)
class IsolationFilter:
    """Keep the nodes that the isolation policies allow for a bundle (Pulsar's applyNamespacePolicies).

    With a policy: its primary nodes, and its secondary ones if there are too few. Never others, even if nothing is
    left, and the kind of topics does not count. Without a policy: the shared nodes that serve the bundle's kind of
    topics.

    Attributes:
        skips_names_without_port: a node whose name is not ``host:port`` is never kept, because its host cannot be read
            from the name (Pulsar's). Off: the whole name is the host.
    """

    skips_names_without_port: bool = False
    name: str = FILTER_NAME

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: IsolationFacts) -> Filtering:
        """The nodes that may serve the bundle."""
        named = tuple(node_id for node_id in candidates if not self.skips_names_without_port or ":" in node_id)
        policy = context.rules.isolation.of(bundle.namespace)
        if policy is None:
            kept, dropped = self._shared(bundle, named, context)
        else:
            kept, dropped = self._of_policy(policy, bundle, named, context)
        if len(named) < len(candidates):
            nameless = (node_id for node_id in candidates if ":" not in node_id)
            dropped += [Dropped(node_id, "name without a port", "host:port") for node_id in nameless]
        return Filtering(self.name, tuple(kept), tuple(dropped))

    def _of_policy(
        self, policy: IsolationPolicy, bundle: BundleToPlace, candidates: Sequence[str], context: IsolationFacts
    ) -> tuple[list[str], list[Dropped]]:
        primary = frozenset(node_id for node_id in candidates if policy.is_primary(node_id))
        needs_secondaries = policy.needs_secondaries(len(primary))
        kept: list[str] = []
        dropped: list[Dropped] = []
        for node_id in candidates:
            if node_id in primary or (needs_secondaries and policy.is_secondary(node_id)):
                kept.append(node_id)
            else:
                wanted = "primary or secondary" if needs_secondaries else "primary"
                role = context.rules.isolation.role(bundle.namespace, node_id).value
                dropped.append(Dropped(node_id, role, f"{wanted} by policy {policy.name}"))
        return kept, dropped

    def _shared(
        self, bundle: BundleToPlace, candidates: Sequence[str], context: IsolationFacts
    ) -> tuple[list[str], list[Dropped]]:
        kind = "non-persistent topics" if bundle.has_non_persistent_topic else "persistent topics"
        kept: list[str] = []
        dropped: list[Dropped] = []
        for node_id in candidates:
            if not context.takes(node_id, non_persistent=bundle.has_non_persistent_topic):
                dropped.append(Dropped(node_id, f"serves no {kind}", f"serves {kind}"))
            elif not context.rules.isolation.is_shared(node_id):
                dropped.append(Dropped(node_id, NodeRole.NONE.value, NodeRole.SHARED.value))
            else:
                kept.append(node_id)
        return kept, dropped
