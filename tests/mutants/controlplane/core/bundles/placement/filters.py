"""Bugs in ``controlplane/core/bundles/placement/filters.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_FILTERS_AND_EXTENSIBLE_TESTS: Final = (
    "unit/core/bundles/placement/test_filters.py",
    "unit/core/bundles/placement/test_extensible.py",
)
_FILTERS_TESTS: Final = ("unit/core/bundles/placement/test_filters.py",)

BUGS: Final = (
    Bug(
        "topic count: the modular limit itself is too many",
        "if count > self.max_topics or",
        "if count >= self.max_topics or",
        ("topic_count_filter",),
    ),
    Bug(
        "topic count: the extensible limit itself is allowed",
        "(self.drops_at_limit and count == self.max_topics)",
        "False",
        (),
        _FILTERS_AND_EXTENSIBLE_TESTS,
    ),
    Bug(
        "topic count: nobody is left if every node has too many",
        "if not kept and self.keeps_all_if_none:",
        "if False:",
        ("topic_count_filter",),
    ),
    Bug(
        "load manager: a node of which nothing is known is dropped",
        "if found is None or found == self.manager:",
        "if found == self.manager:",
        ("assign",),
        _FILTERS_TESTS,
    ),
    Bug(
        "load manager: nodes with another one are kept",
        "if found is None or found == self.manager:",
        "if True:",
        ("assign",),
        _FILTERS_TESTS,
    ),
    Bug(
        "even distribution: namespaces are counted instead of bundles",
        "context.served.count(node_id, namespace)",
        "len(tuple(context.served.namespaces(node_id)))",
        ("even_bundles",),
    ),
)
