"""Bugs in ``controlplane/core/bundles/placement/context.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "topic count: preallocated topics do not count",
        "return node.load.topic_count + sum(bundle.topic_count for bundle in node.preallocated.values())",
        "return node.load.topic_count",
        ("topic_count_filter",),
    ),
    Bug(
        "anti-affinity: the modular manager counts bundles",
        "len(group & spaces.keys())",
        "sum(len(spaces[each]) for each in group & spaces.keys())",
        ("anti_affinity",),
    ),
    Bug(
        "anti-affinity: the extensible manager counts a node once",
        "counts.setdefault(namespace_of(bundle_id), Counter())[node_id] += 1",
        "counts.setdefault(namespace_of(bundle_id), Counter())[node_id] = 1",
        ("anti_affinity_ext",),
    ),
)
