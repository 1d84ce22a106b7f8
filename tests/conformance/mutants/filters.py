"""Bugs in the filters of nodes: topics, managers, versions, isolation, anti-affinity, even distribution."""

from typing import Final

from tests.conformance.mutants.mutant import Mutant

_CONTRACT: Final = "bundles/placement/contract.py"
_FILTERS: Final = "bundles/placement/filters.py"
_CONTEXT: Final = "bundles/placement/context.py"
_AFFINITY: Final = "bundles/placement/anti_affinity.py"
_ISOLATION: Final = "bundles/placement/isolation.py"
_SCOPE: Final = "bundles/placement/unload_scope.py"
_VERSION: Final = "bundles/placement/version.py"
_TESTS: Final = "unit/core/bundles/placement"
_FILTER_TESTS: Final = (f"{_TESTS}/test_filters.py",)
_ISOLATION_TESTS: Final = (f"{_TESTS}/test_isolation.py",)
_EXTENSIBLE_TESTS: Final = (f"{_TESTS}/test_extensible.py",)

MUTANTS: Final = (
    Mutant(
        "the nodes with the most are kept instead of those with the least",
        _CONTRACT,
        "least = min(measured",
        "least = max(measured",
        ("even_bundles",),
    ),
    Mutant(
        "topic count: the modular limit itself is too many",
        _FILTERS,
        "if count > self.max_topics or",
        "if count >= self.max_topics or",
        ("topic_count_filter",),
    ),
    Mutant(
        "topic count: the extensible limit itself is allowed",
        _FILTERS,
        "(self.drops_at_limit and count == self.max_topics)",
        "False",
        (),
        (*_FILTER_TESTS, *_EXTENSIBLE_TESTS),
    ),
    Mutant(
        "topic count: nobody is left if every node has too many",
        _FILTERS,
        "if not kept and self.keeps_all_if_none:",
        "if False:",
        ("topic_count_filter",),
    ),
    Mutant(
        "topic count: preallocated topics do not count",
        _CONTEXT,
        "return node.load.topic_count + sum(bundle.topic_count for bundle in node.preallocated.values())",
        "return node.load.topic_count",
        ("topic_count_filter",),
    ),
    Mutant(
        "load manager: a node of which nothing is known is dropped",
        _FILTERS,
        "if found is None or found == self.manager:",
        "if found == self.manager:",
        ("assign",),
        _FILTER_TESTS,
    ),
    Mutant(
        "load manager: nodes with another one are kept",
        _FILTERS,
        "if found is None or found == self.manager:",
        "if True:",
        ("assign",),
        _FILTER_TESTS,
    ),
    Mutant(
        "even distribution: namespaces are counted instead of bundles",
        _FILTERS,
        "context.served.count(node_id, namespace)",
        "len(tuple(context.served.namespaces(node_id)))",
        ("even_bundles",),
    ),
    Mutant(
        "anti-affinity: the modular manager counts bundles",
        _CONTEXT,
        "len(group & spaces.keys())",
        "sum(len(spaces[each]) for each in group & spaces.keys())",
        ("anti_affinity",),
    ),
    Mutant(
        "anti-affinity: the extensible manager counts a node once",
        _CONTEXT,
        "counts.setdefault(namespace_of(bundle_id), Counter())[node_id] += 1",
        "counts.setdefault(namespace_of(bundle_id), Counter())[node_id] = 1",
        ("anti_affinity_ext",),
    ),
    Mutant(
        "anti-affinity: names of groups are compared with their case",
        _AFFINITY,
        "if group == name or _without_case(group) == folded",
        "if group == name",
        ("anti_affinity",),
    ),
    Mutant(
        "anti-affinity: domains are never compared",
        _AFFINITY,
        "if not self.uses_domains or not domains:",
        "if True:",
        ("anti_affinity",),
    ),
    Mutant(
        "anti-affinity: a domain counts as much as its last node",
        _AFFINITY,
        "by_domain[domain] = by_domain.get(domain, 0) + counts.get(node_id, 0)",
        "by_domain[domain] = counts.get(node_id, 0)",
        ("anti_affinity",),
    ),
    Mutant(
        "anti-affinity: a bundle stays although a node serves nothing of its group",
        _AFFINITY,
        "return least == 0 or current_count",
        "return current_count",
        ("anti_affinity",),
        _FILTER_TESTS,
    ),
    Mutant(
        "anti-affinity: a bundle leaves although all nodes serve equally much",
        _AFFINITY,
        "current_count > least or",
        "current_count >= least or",
        ("anti_affinity",),
    ),
    Mutant(
        "isolation: the beginning of a name is enough",
        _ISOLATION,
        "if pattern.fullmatch(name):",
        "if pattern.match(name):",
        ("isolation",),
    ),
    Mutant(
        "isolation: secondaries help out at the least number of primaries",
        _ISOLATION,
        "return primary_count < self.min_primaries",
        "return primary_count <= self.min_primaries",
        ("isolation",),
    ),
    Mutant(
        "isolation: the host ends at the first colon",
        _ISOLATION,
        'host, colon, _ = node_id.rpartition(":")',
        'host, colon, _ = node_id.partition(":")',
        ("isolation",),
        _ISOLATION_TESTS,
    ),
    Mutant(
        "isolation: the last policy of a namespace counts",
        _ISOLATION,
        "return next(holding, None)",
        "return [None, *holding][-1]",
        ("isolation",),
    ),
    Mutant(
        "isolation: reserved nodes serve namespaces without a policy",
        _ISOLATION,
        "elif not context.rules.isolation.is_shared(node_id):",
        "elif False:",
        ("isolation",),
    ),
    Mutant(
        "isolation: the kind of topics does not count without a policy",
        _ISOLATION,
        "if not context.takes(node_id, non_persistent=bundle.has_non_persistent_topic):",
        "if False:",
        ("isolation",),
    ),
    Mutant(
        "isolation: other primary nodes unload what changed only",
        _SCOPE,
        "other_primaries = old is not None and Counter(old.primary) != Counter(new.primary)",
        "other_primaries = False",
        (),
        _ISOLATION_TESTS,
    ),
    Mutant(
        "isolation: expressions of both policies are unloaded, too",
        _SCOPE,
        "if each not in common}",
        "}",
        (),
        _ISOLATION_TESTS,
    ),
    Mutant(
        "version: only nodes with the latest build are kept",
        _VERSION,
        "if compare_releases(version, latest) == 0:",
        "if compare_builds(version, latest) == 0:",
        ("assign",),
        _FILTER_TESTS,
    ),
    Mutant(
        "version: numbers are compared as texts",
        _VERSION,
        "if _is_number(mine) and _is_number(theirs):",
        "if False:",
        ("assign",),
        _FILTER_TESTS,
    ),
    Mutant(
        "version: a candidate before the release is as good",
        _VERSION,
        "return len(second.pre_release) - len(first.pre_release)",
        "return 0",
        ("assign",),
        _FILTER_TESTS,
    ),
)
