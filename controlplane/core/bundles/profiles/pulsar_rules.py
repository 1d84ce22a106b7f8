"""The rules of Pulsar that a configuration may name, by the names of their classes, and how each is made."""

from typing import Final

from controlplane.core.bundles.placement.avg_shedder import PlannedNodePlacement
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate, LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import (
    LeastResourceUsage,
    LeastResourceUsageSettings,
    LeastStoredUsage,
)
from controlplane.core.bundles.placement.round_robin import RoundRobin
from controlplane.core.bundles.profiles.registry import Rule, RuleKind
from controlplane.core.bundles.settings.managers import Manager
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder, AvgShedderSettings
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.threshold import ThresholdSettings, ThresholdShedder
from controlplane.core.bundles.shedding.transfer import TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings

_IMPLEMENTATIONS: Final = "org.apache.pulsar.broker.loadbalance.impl"
_EXTENSIONS: Final = "org.apache.pulsar.broker.loadbalance.extensions"
AVERAGE: Final = f"{_IMPLEMENTATIONS}.AvgShedder"
OVERLOAD: Final = f"{_IMPLEMENTATIONS}.OverloadShedder"
TRANSFER: Final = f"{_EXTENSIONS}.scheduler.TransferShedder"
EXTENSIBLE_LEAST_USAGE: Final = f"{_EXTENSIONS}.strategy.LeastResourceUsageWithWeight"

PULSAR_RULES: Final = (
    Rule(
        RuleKind.SHEDDER,
        f"{_IMPLEMENTATIONS}.ThresholdShedder",
        Manager.MODULAR,
        lambda its: ThresholdShedder(its.settings(ThresholdSettings)),
    ),
    Rule(RuleKind.SHEDDER, OVERLOAD, Manager.MODULAR, lambda its: OverloadShedder(its.settings(OverloadSettings))),
    Rule(
        RuleKind.SHEDDER,
        f"{_IMPLEMENTATIONS}.UniformLoadShedder",
        Manager.MODULAR,
        lambda its: UniformLoadShedder(its.settings(UniformSettings)),
    ),
    Rule(
        RuleKind.SHEDDER,
        AVERAGE,
        Manager.MODULAR,
        lambda its: AvgShedder(its.settings(AvgShedderSettings)),
        needs_partner=True,
    ),
    Rule(RuleKind.SHEDDER, TRANSFER, Manager.EXTENSIBLE, lambda its: TransferShedder(its.settings(TransferSettings))),
    Rule(
        RuleKind.PLACEMENT,
        f"{_IMPLEMENTATIONS}.LeastLongTermMessageRate",
        Manager.MODULAR,
        lambda its: LeastMessageRate(its.settings(LeastMessageRateSettings)),
    ),
    Rule(
        RuleKind.PLACEMENT,
        f"{_IMPLEMENTATIONS}.LeastResourceUsageWithWeight",
        Manager.MODULAR,
        lambda its: LeastResourceUsage(its.settings(LeastResourceUsageSettings)),
    ),
    Rule(
        RuleKind.PLACEMENT, f"{_IMPLEMENTATIONS}.RoundRobinBrokerSelector", Manager.MODULAR, lambda _its: RoundRobin()
    ),
    Rule(
        RuleKind.PLACEMENT,
        AVERAGE,
        Manager.MODULAR,
        lambda its: PlannedNodePlacement(AvgShedder(its.settings(AvgShedderSettings))),
        needs_partner=True,
    ),
    Rule(
        RuleKind.PLACEMENT,
        EXTENSIBLE_LEAST_USAGE,
        Manager.EXTENSIBLE,
        lambda its: LeastStoredUsage(its.settings(LeastResourceUsageSettings)),
    ),
)
