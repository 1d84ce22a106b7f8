"""Small views of loads, for tests of the rules for bundles."""

from collections.abc import Mapping

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.reports import ResourceUsage

MIB = 1_048_576.0


def traffic(mib_per_s: float, messages_per_s: float = 0.0) -> MessageLoad:
    """Everything inbound."""
    return MessageLoad(mib_per_s * MIB, 0.0, messages_per_s, 0.0)


def bundle_history(mib_per_s: float, messages_per_s: float = 0.0, samples: int = 1) -> BundleHistory:
    """A bundle with the same figures in the short and in the long run."""
    load = traffic(mib_per_s, messages_per_s)
    return BundleHistory(BundleAverages(TimeAverage(10, samples, load), TimeAverage(1_000, samples, load)))


def loaded_node(
    name: str, cpu_percent: float, load: MessageLoad, *bundle_ids: str, memory_percent: float = 0.0
) -> NodeView:
    """A node whose usage is that of its processor."""
    cpu, memory = ResourceUsage(cpu_percent, 100.0), ResourceUsage(memory_percent, 100.0)
    return NodeView(NodeLoad(name, cpu=cpu, memory=memory, traffic=load, bundles=bundle_ids))


def view_of(*nodes: NodeView, bundles: Mapping[str, BundleHistory], recent: frozenset[str] = frozenset()) -> LoadView:
    """A view in the given order."""
    return LoadView({node.load.node_id: node for node in nodes}, bundles, recent)
