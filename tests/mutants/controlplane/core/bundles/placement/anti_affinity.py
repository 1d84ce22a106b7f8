"""Bugs in ``controlplane/core/bundles/placement/anti_affinity.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_filters.py",)

BUGS: Final = (
    Bug(
        "anti-affinity: names of groups are compared with their case",
        "if group == name or _without_case(group) == folded",
        "if group == name",
        ("anti_affinity",),
    ),
    Bug(
        "anti-affinity: domains are never compared",
        "if not self.uses_domains or not domains:",
        "if True:",
        ("anti_affinity",),
    ),
    Bug(
        "anti-affinity: a domain counts as much as its last node",
        "by_domain[domain] = by_domain.get(domain, 0) + counts.get(node_id, 0)",
        "by_domain[domain] = counts.get(node_id, 0)",
        ("anti_affinity",),
    ),
    Bug(
        "anti-affinity: a bundle stays although a node serves nothing of its group",
        "return least == 0 or current_count",
        "return current_count",
        ("anti_affinity",),
        _TESTS,
    ),
    Bug(
        "anti-affinity: a bundle leaves although all nodes serve equally much",
        "current_count > least or",
        "current_count >= least or",
        ("anti_affinity",),
    ),
)
