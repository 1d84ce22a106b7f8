"""Settings of the ownership of bundles. The defaults are those of Pulsar 4.2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.settings.knobs import knob, require_known
from controlplane.errors import ConfigurationError

_CHANNEL: Final = "org.apache.pulsar.broker.loadbalance.extensions.channel"
_STORAGES: Final[Mapping[str, Storage]] = {
    "ServiceUnitStateTableViewImpl": Storage.SYSTEM_TOPIC,
    "ServiceUnitStateMetadataStoreTableViewImpl": Storage.METADATA_STORE,
}
_NO_SYNCER: Final = "None"


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

    unload_timeout_ms: int = knob("namespaceBundleUnloadingTimeoutMs", 60_000)
    shutdown_timeout_ms: int = knob("brokerShutdownTimeoutMs", 60_000)
    session_timeout_ms: int = knob("metadataStoreSessionTimeoutMillis", 30_000)
    operation_timeout_s: int = knob("metadataStoreOperationTimeoutSeconds", 30)
    tombstone_delay_s: int = knob("loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", 3_600)
    in_flight_ms: int = knob("loadBalancerInFlightServiceUnitStateWaitingTimeInMillis", 30_000)
    monitor_s: int = knob("loadBalancerServiceUnitStateMonitorIntervalInSeconds", 60)
    max_concurrent_overrides: int = knob("loadBalancerServiceUnitStateMaxConcurrentOverrides", 64)
    unloads_in_phases: bool = knob("loadBalancerMultiPhaseBundleUnload", default=True)
    table_view: str = knob("loadManagerServiceUnitStateTableViewClassName", f"{_CHANNEL}.ServiceUnitStateTableViewImpl")
    table_view_syncer: str = knob("loadBalancerServiceUnitTableViewSyncer", "None")
    leaves_assigned_at_start: bool = False

    def __post_init__(self) -> None:
        """Refuse a tombstone that comes before the next state can, and a clean-up that could not go on.

        Raises:
            ConfigurationError: ``tombstone_delay_s`` is shorter than ``in_flight_ms``, or ``max_concurrent_overrides``
                is less than 1.
        """
        if self.max_concurrent_overrides < 1:
            message = f"max_concurrent_overrides has to be 1 or greater, not {self.max_concurrent_overrides}"
            raise ConfigurationError(message)
        times = (self.unload_timeout_ms, self.shutdown_timeout_ms, self.session_timeout_ms, self.operation_timeout_s)
        if not all(each > 0 for each in (*times, self.in_flight_ms, self.monitor_s)):
            message = f"times and periods of ownership have to be greater than 0, not {self}"
            raise ConfigurationError(message)
        if self.tombstone_delay_s * 1_000 < self.in_flight_ms:
            message = (
                f"a bundle cannot be forgotten after {self.tombstone_delay_s} s, because its state may be in flight "
                f"for {self.in_flight_ms} ms"
            )
            raise ConfigurationError(message)
        require_known(self.table_view, _CHANNEL, tuple(_STORAGES), "store of ownership")
        if self.table_view_syncer != _NO_SYNCER:
            message = f"a syncer of ownership is not offered: take {_NO_SYNCER!r}, not {self.table_view_syncer!r}"
            raise ConfigurationError(message)

    @property
    def storage(self) -> Storage:
        """Where the records are kept."""
        return _STORAGES[self.table_view.rpartition(".")[2]]
