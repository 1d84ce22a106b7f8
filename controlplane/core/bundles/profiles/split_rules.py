"""Pulsar's split algorithms, as rules that a configuration may name."""

from typing import Final

from controlplane.core.bundles.profiles.registry import Rule, RuleKind
from controlplane.core.bundles.splitting.algorithms import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
    TrafficSplitSettings,
)

SPLIT_RULES: Final = (
    Rule(RuleKind.SPLIT_ALGORITHM, RangeEquallyDivide().name, None, lambda _its: RangeEquallyDivide()),
    Rule(RuleKind.SPLIT_ALGORITHM, TopicCountEquallyDivide().name, None, lambda _its: TopicCountEquallyDivide()),
    Rule(RuleKind.SPLIT_ALGORITHM, SpecifiedPositionsDivide().name, None, lambda _its: SpecifiedPositionsDivide()),
    Rule(
        RuleKind.SPLIT_ALGORITHM,
        FlowOrQpsEquallyDivide(TrafficSplitSettings()).name,
        None,
        lambda its: FlowOrQpsEquallyDivide(its.settings(TrafficSplitSettings)),
    ),
)
"""They serve both managers."""
