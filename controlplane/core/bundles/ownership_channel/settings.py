"""Settings of the ownership of bundles. The defaults are those of Pulsar 4.2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, KnobRefusedError
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable, require_known

_CHANNEL: Final = "org.apache.pulsar.broker.loadbalance.extensions.channel"
_STORAGES: Final[Mapping[str, Storage]] = {
    "ServiceUnitStateTableViewImpl": Storage.SYSTEM_TOPIC,
    "ServiceUnitStateMetadataStoreTableViewImpl": Storage.METADATA_STORE,
}
_NO_SYNCER: Final = "None"
_TOMBSTONE: Final = "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds"
_IN_FLIGHT: Final = "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis"
_TABLE_VIEW: Final = "loadManagerServiceUnitStateTableViewClassName"
_SYNCER: Final = "loadBalancerServiceUnitTableViewSyncer"


@dataclass(frozen=True, slots=True)
class OwnershipSettings:
    """How ownership of bundles changes hands.

    Attributes:
        unload_timeout_ms: time for a bundle's former owner to close its topics.
        shutdown_timeout_ms: time for a node to give away all its bundles when it stops.
        session_timeout_ms: a node without contact to the metadata store for so long is dead.
        operation_timeout_s: time for one operation of the metadata store.
        tombstone_delay_s: a bundle without an owner is forgotten after this time; at least ``in_flight_ms``.
        in_flight_ms: time for a state to be followed by the next one.
        monitor_s: period in which the leader looks for states that are stuck and for owners that are dead.
        max_concurrent_overrides: bundles of a dead owner that get another one at the same time.
        unloads_in_phases: a former owner keeps its connections until the new owner is ready (PIP-307).
        table_view: class name of the store of ownership.
        table_view_syncer: direction in which two such stores are kept alike; ``None`` for none.
        leaves_assigned_at_start: a node that starts leaves bundles alone that were assigned to it while it was away.
            They wait until the leader finds them stuck, as in Pulsar before #25379.
    """

    unload_timeout_ms: int = knob("namespaceBundleUnloadingTimeoutMs", 60_000, POSITIVE, accepted=POSITIVE)
    shutdown_timeout_ms: int = knob("brokerShutdownTimeoutMs", 60_000, POSITIVE, accepted=POSITIVE)
    session_timeout_ms: int = knob("metadataStoreSessionTimeoutMillis", 30_000, POSITIVE, accepted=POSITIVE)
    operation_timeout_s: int = knob("metadataStoreOperationTimeoutSeconds", 30, POSITIVE, accepted=POSITIVE)
    tombstone_delay_s: int = knob(_TOMBSTONE, 3_600, NOT_NEGATIVE)
    in_flight_ms: int = knob(_IN_FLIGHT, 30_000, POSITIVE, accepted=POSITIVE)
    monitor_s: int = knob("loadBalancerServiceUnitStateMonitorIntervalInSeconds", 60, POSITIVE, accepted=POSITIVE)
    max_concurrent_overrides: int = knob(
        "loadBalancerServiceUnitStateMaxConcurrentOverrides", 64, ONE_OR_MORE, accepted=ONE_OR_MORE
    )
    unloads_in_phases: bool = knob("loadBalancerMultiPhaseBundleUnload", default=True)
    table_view: str = knob(_TABLE_VIEW, f"{_CHANNEL}.ServiceUnitStateTableViewImpl")
    table_view_syncer: str = knob(_SYNCER, "None")
    leaves_assigned_at_start: bool = False

    def __post_init__(self) -> None:
        """Refuse a tombstone that comes before the next state can, and a clean-up that could not go on.

        Raises:
            ConfigurationError: a knob has a value outside of its range, or ``tombstone_delay_s`` is shorter than
                ``in_flight_ms``.
        """
        refuse_unusable(self)
        if self.tombstone_delay_s * 1_000 < self.in_flight_ms:
            raise KnobRefusedError(
                f"{_TOMBSTONE} is {self.tombstone_delay_s} (seconds), allowed is no less than {_IN_FLIGHT}, "
                f"{self.in_flight_ms} (milliseconds): a bundle cannot be forgotten while its state is in flight",
                _TOMBSTONE,
                _IN_FLIGHT,
            )
        require_known(_TABLE_VIEW, self.table_view, _CHANNEL, tuple(_STORAGES))
        if self.table_view_syncer != _NO_SYNCER:
            message = f"{_SYNCER} is {self.table_view_syncer!r}, allowed is {_NO_SYNCER!r}: a syncer is not offered"
            raise KnobRefusedError(message, _SYNCER)

    @property
    def storage(self) -> Storage:
        """Where the records are kept."""
        return _STORAGES[self.table_view.rpartition(".")[2]]
