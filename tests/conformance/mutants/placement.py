"""Bugs in the rules that choose a bundle's node: strategies and selections."""

from typing import Final

from tests.conformance.mutants.mutant import Mutant

_RATE: Final = "bundles/placement/least_message_rate.py"
_USAGE: Final = "bundles/placement/least_resource_usage.py"
_ROBIN: Final = "bundles/placement/round_robin.py"
_MODULAR: Final = "bundles/placement/modular.py"
_EXTENSIBLE: Final = "bundles/placement/extensible.py"
_CHECKS: Final = "bundles/placement/shed_checks.py"
_NAMED: Final = "bundles/placement/affinity.py"
_FIXED: Final = "bundles/placement/fixed_owner.py"
_TESTS: Final = "unit/core/bundles/placement"
_STRATEGY_TESTS: Final = (f"{_TESTS}/test_strategies.py",)
_MODULAR_TESTS: Final = (f"{_TESTS}/test_modular.py",)
_EXTENSIBLE_TESTS: Final = (f"{_TESTS}/test_extensible.py",)

MUTANTS: Final = (
    Mutant(
        "least rate: a node at the threshold is overloaded",
        _RATE,
        "if usage > self.settings.overloaded_percent / 100.0:",
        "if usage >= self.settings.overloaded_percent / 100.0:",
        ("select_least_long_term",),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least rate: preallocated bundles do not count",
        _RATE,
        "return preallocated + node.averages.long_term.message_rate_per_s",
        "return node.averages.long_term.message_rate_per_s",
        ("select_least_long_term",),
    ),
    Mutant(
        "least rate: preallocated bundles are added in another order",
        _RATE,
        "for bundle in node.preallocated.values():",
        "for bundle in reversed(list(node.preallocated.values())):",
        ("select_least_long_term",),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least rate: the short term counts",
        _RATE,
        "bundle.averages.long_term.load.message_rate_per_s",
        "bundle.averages.short_term.load.message_rate_per_s",
        ("select_least_long_term", "assign"),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least usage: a node exactly so far below the mean is not good",
        _USAGE,
        "if usage + difference <= mean)",
        "if usage + difference < mean)",
        ("least_resource_usage", "ext_least_resource"),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least usage: the difference is subtracted from the mean",
        _USAGE,
        "if usage + difference <= mean)",
        "if usage <= mean - difference)",
        ("least_resource_usage", "ext_least_resource"),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least usage: the mean is summed in another order",
        _USAGE,
        "for usage in usages.values():",
        "for usage in reversed(usages.values()):",
        ("least_resource_usage", "ext_least_resource"),
        _STRATEGY_TESTS,
    ),
    Mutant(
        "least usage: an idle node keeps its history",
        _USAGE,
        "if former is None or not load.bundles or silent:",
        "if former is None:",
        ("least_resource_usage",),
    ),
    Mutant(
        "least usage: history and usage change places",
        _USAGE,
        "return former * weight + (1 - weight) * usage",
        "return usage * weight + (1 - weight) * former",
        ("least_resource_usage",),
    ),
    Mutant(
        "least usage: candidates without a load count in the stored mean",
        _USAGE,
        "mean = total / len(usages) if usages else 0.0",
        "mean = total / len(tuple(candidates)) if usages else 0.0",
        ("ext_least_resource",),
    ),
    Mutant(
        "round robin: the count never starts again",
        _ROBIN,
        "0 if memory.selection_count == _GREATEST_COUNT else memory.selection_count + 1",
        "memory.selection_count + 1",
        ("round_robin",),
    ),
    Mutant(
        "round robin: the list is renewed at each selection",
        _ROBIN,
        "if len(listed) != len(candidates) or listed[index] not in candidates:",
        "if True:",
        ("round_robin",),
    ),
    Mutant(
        "assign: a choice at the threshold is made again",
        _MODULAR,
        "return usage if usage > self.settings.overloaded_percent / 100.0 else None",
        "return usage if usage >= self.settings.overloaded_percent / 100.0 else None",
        ("assign",),
        _MODULAR_TESTS,
    ),
    Mutant(
        "assign: the second choice is made among the filtered nodes",
        _MODULAR,
        "second, memory = self._pick(bundle, allowed,",
        "second, memory = self._pick(bundle, candidates,",
        ("assign",),
    ),
    Mutant(
        "assign: an overloaded choice is not made again",
        _MODULAR,
        "if overload is None:",
        "if True:",
        ("assign",),
    ),
    Mutant(
        "assign: the system namespace is spread only if asked",
        _MODULAR,
        "if settings.distributes_evenly or bundle.namespace == SYSTEM_NAMESPACE:",
        "if settings.distributes_evenly:",
        ("assign",),
        _MODULAR_TESTS,
    ),
    Mutant(
        "assign: even distribution stands before anti-affinity",
        _MODULAR,
        "return (*always, EvenDistributionFilter())",
        "return (always[0], EvenDistributionFilter(), *always[1:])",
        ("assign",),
        _MODULAR_TESTS,
    ),
    Mutant(
        "assign: a preallocated bundle is placed again",
        _MODULAR,
        "if former is not None and (",
        "if False and (",
        ("assign",),
    ),
    Mutant(
        "assign: a preallocation to a missing node is followed",
        _MODULAR,
        "(rule.settings.follows_preallocation_to_missing_node or former in context.available)",
        "(True)",
        (),
        _MODULAR_TESTS,
    ),
    Mutant(
        "assign: a chosen node's preallocation does not count",
        _MODULAR,
        "context = context.with_preallocated(placement.node_id, bundle)",
        "pass",
        ("assign",),
    ),
    Mutant(
        "assign: excluded namespaces are placed by the strategy",
        _MODULAR,
        "if bundle.namespace in self.settings.excluded_namespaces:",
        "if False:",
        ("assign",),
    ),
    Mutant(
        "assign: a filter that fails leaves its candidates",
        _MODULAR,
        "steps.append(Filtering(RESTORED, allowed.kept))\n                break",
        "break",
        ("assign",),
        _MODULAR_TESTS,
    ),
    Mutant(
        "assign: a pipeline that leaves nobody is obeyed",
        _MODULAR,
        "if not steps[-1].kept:",
        "if False:",
        ("assign",),
        _MODULAR_TESTS,
    ),
    Mutant(
        "extensible: excluded nodes are candidates",
        _EXTENSIBLE,
        "for node_id in context.registered if node_id not in excluded)",
        "for node_id in context.registered)",
        (),
        _EXTENSIBLE_TESTS,
    ),
    Mutant(
        "extensible: a request that only reads chooses a node",
        _EXTENSIBLE,
        "if read_only:",
        "if False:",
        (),
        _EXTENSIBLE_TESTS,
    ),
    Mutant(
        "extensible: isolation stands before anti-affinity",
        _EXTENSIBLE,
        "            AntiAffinityFilter(settings.uses_domains),\n"
        "            IsolationFilter(settings.skips_names_without_port),\n",
        "            IsolationFilter(settings.skips_names_without_port),\n"
        "            AntiAffinityFilter(settings.uses_domains),\n",
        (),
        _EXTENSIBLE_TESTS,
    ),
    Mutant(
        "shedding: a bundle leaves for its own node",
        _CHECKS,
        "elif placement.node_id == current:",
        "elif False:",
        (),
        _MODULAR_TESTS,
    ),
    Mutant(
        "shedding: a bundle leaves although policies allow no other node",
        _CHECKS,
        "if self.settings.asks_policies and",
        "if False and",
        (),
        _MODULAR_TESTS,
    ),
    Mutant(
        "transfer: a filter that fails allows every node",
        "bundles/placement/transfer_checks.py",
        "return None if any(step.failure is not None for step in steps) else",
        "return",
        (),
        (f"{_TESTS}/test_transfer_checks.py",),
    ),
    Mutant(
        "transfer: a group counts for nothing",
        "bundles/placement/transfer_checks.py",
        " or group_of(namespace, rules.groups) is not None",
        "",
        (),
        (f"{_TESTS}/test_transfer_checks.py",),
    ),
    Mutant(
        "a random number of 1 is taken",
        "values/draws.py",
        "if not 0 <= draw < 1:",
        "if not 0 <= draw <= 1:",
        (),
        ("unit/core/values/test_draws.py",),
    ),
    Mutant(
        "quirk E is gone: a named destination is kept by bundle",
        _NAMED,
        "return range_of(bundle_id) if self.keyed_by_range_only else bundle_id",
        "return bundle_id",
        (),
        _MODULAR_TESTS,
    ),
    Mutant(
        "a monitor's namespace belongs to a node that is gone",
        _FIXED,
        "if monitor is not None and monitor[1] in registered else None",
        "if monitor is not None else None",
        (),
        _EXTENSIBLE_TESTS,
    ),
)
