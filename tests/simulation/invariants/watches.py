"""What is looked at in intervals of virtual time, whether anything happens or not."""

from typing import Final

from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP, ROUTING_TABLE
from tests.simulation.faults import Injector
from tests.simulation.invariants.bounds import BoundsWatch
from tests.simulation.invariants.consent import ConsentWatch
from tests.simulation.invariants.cut_watch import CutWatch
from tests.simulation.invariants.endings import EndingWatch
from tests.simulation.invariants.fencing import FencingWatch
from tests.simulation.invariants.handoff_bounds import HandoffBoundsWatch
from tests.simulation.invariants.log_watch import LogWatch
from tests.simulation.invariants.opened_bundles import OpenedBundlesWatch
from tests.simulation.invariants.overlap import OverlapWatch
from tests.simulation.invariants.planned_overlap import PlannedOverlapWatch
from tests.simulation.invariants.sizes import SizeWatch
from tests.simulation.invariants.table_readings import TableReadings
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

_SIZES_EVERY: Final = 5


class Watches:
    """All of them; a script may switch them off."""

    def __init__(
        self,
        world: World,
        log: LogWatch,
        verdicts: Verdicts,
        fencing: FencingWatch,
        injector: Injector,
        readings: TableReadings,
    ) -> None:
        """Follow the log from its beginning."""
        self._log = log
        self._looks = 0
        self.bounds = BoundsWatch(world, log, verdicts, lambda: injector.is_whole and _answers(world))
        self.cut = CutWatch(world, verdicts)
        self._endings = EndingWatch(world, verdicts)
        self._readings = readings
        self._overlap = OverlapWatch(world, verdicts, fencing, self.bounds, readings)
        self.planned = PlannedOverlapWatch(world, verdicts)
        consent = ConsentWatch(world, verdicts)
        self._opened = OpenedBundlesWatch(world, verdicts, consent)
        self._handoffs = HandoffBoundsWatch(world, log, verdicts, self.bounds, consent)
        self._sizes = SizeWatch(world, verdicts)
        injector.on_cut = self.cut.begin
        log.on_decision += [self.bounds.see, self._overlap.see, self.planned.see, self.cut.see]
        log.on_decision += [consent.see, self._opened.see, self._handoffs.see]

    def look(self) -> None:
        """Look at everything once; sizes more seldom."""
        self._looks += 1
        self._log.look()
        self.bounds.look()
        self._readings.look()
        self._overlap.look()
        self.planned.look()
        self._opened.look()
        self._handoffs.look()
        self._endings.look()
        if self._looks % _SIZES_EVERY == 0:
            self._sizes.look(self._log.state)


def _answers(world: World) -> bool:
    """Whether Kafka and the lease store answer everybody, and at once; dead letters may wait."""
    broker, leases = world.broker, world.leases
    if broker.delivery_delay_ms or not broker.coordinator_available or not leases.available or leases.refusal:
        return False
    for topic in map(world.cluster.topic, (HEARTBEATS, MEMBERSHIP, INTENTS, DECISIONS, ROUTING_TABLE)):
        for number, partition in enumerate(broker.partitions(topic)):
            is_usable = broker.takes_records(topic, number) and broker.is_replicated(topic, number)
            if partition.awaits_markers or not is_usable:
                return False
    return True
