"""Bugs in ``controlplane/core/bundles/placement/served.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_served.py",)

BUGS: Final = (
    Bug(
        "a bundle that a node gets hides those that it has of the namespace",
        "ranges = of_node.get(namespace, frozenset()) | {range_of(bundle_id)}",
        "ranges = frozenset({range_of(bundle_id)})",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "a namespace that a node gets hides the others that it has",
        "OrderedMap.of(of_node).put(",
        "OrderedMap.of({}).put(",
        ("assign",),
    ),
    Bug(
        "of a node's bundles in a namespace, one is counted",
        "return len(self.ranges.get(node_id, {}).get(namespace, ()))",
        "return int(namespace in self.ranges.get(node_id, {}))",
        ("even_bundles", "assign"),
    ),
    Bug(
        "preallocated bundles are not served",
        "(*node.load.stats, *node.preallocated) for",
        "tuple(node.load.stats) for",
        (),
        _TESTS,
    ),
)
