"""Which namespaces have to be unloaded after an isolation policy was written (PIP-369)."""

from collections import Counter
from collections.abc import Iterable

from controlplane.core.bundles.placement.isolation import IsolationPolicy, UnloadScope, compiled, matches_any


def namespaces_to_unload(
    new: IsolationPolicy, old: IsolationPolicy | None, namespaces: Iterable[str]
) -> tuple[str, ...]:
    """The namespaces that the policy's change concerns, so that their bundles are placed anew.

    The scope of the new policy counts. ``ALL_MATCHING``: those that an expression of the new or of the old policy
    matches in full. ``CHANGED`` and None: those that an expression matches which only one of both policies has; but all
    matching ones if the lists of primary hosts differ in more than their order. ``NONE``: none.

    Args:
        new: the policy as written.
        old: the policy of this name before; None if there was none.
        namespaces: the namespaces of this cluster; the answer has their order.
    """
    if new.unload_scope is UnloadScope.NONE:
        return ()
    old_expressions = () if old is None else old.namespaces
    expressions = dict.fromkeys((*new.namespaces, *old_expressions))
    other_primaries = old is not None and Counter(old.primary) != Counter(new.primary)
    if new.unload_scope is not UnloadScope.ALL_MATCHING and not other_primaries:
        common = {*new.namespaces} & {*old_expressions}
        expressions = {each: None for each in expressions if each not in common}
    patterns = compiled(tuple(expressions), f"isolation policy {new.name}, namespaces")
    return tuple(namespace for namespace in namespaces if matches_any(patterns, namespace))
