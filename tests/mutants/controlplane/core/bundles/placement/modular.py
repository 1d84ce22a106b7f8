"""Bugs in ``controlplane/core/bundles/placement/modular.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_modular.py",)

BUGS: Final = (
    Bug(
        "assign: a choice at the threshold is made again",
        "return usage if usage > self.settings.overloaded_percent / 100.0 else None",
        "return usage if usage >= self.settings.overloaded_percent / 100.0 else None",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "assign: the second choice is made among the filtered nodes",
        "second, memory = self._pick(bundle, allowed,",
        "second, memory = self._pick(bundle, candidates,",
        ("assign",),
    ),
    Bug(
        "assign: an overloaded choice is not made again",
        "if overload is None:",
        "if True:",
        ("assign",),
    ),
    Bug(
        "assign: the system namespace is spread only if asked",
        "if settings.distributes_evenly or bundle.namespace == SYSTEM_NAMESPACE:",
        "if settings.distributes_evenly:",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "assign: even distribution stands before anti-affinity",
        "return (*always, EvenDistributionFilter())",
        "return (always[0], EvenDistributionFilter(), *always[1:])",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "assign: excluded namespaces are placed by the strategy",
        "if bundle.namespace in self.settings.excluded_namespaces:",
        "if False:",
        ("assign",),
    ),
    Bug(
        "assign: a filter that fails leaves its candidates",
        "steps.append(Filtering(RESTORED, allowed.kept))\n                break",
        "break",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "assign: a pipeline that leaves nobody is obeyed",
        "if not steps[-1].kept:",
        "if False:",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "assign: a preallocation to a missing node is followed",
        "return self.settings.follows_preallocation_to_missing_node or node_id in context.available",
        "return True",
        (),
        _TESTS,
    ),
)
