"""How large are heartbeats of nodes with many slots, and how many can a leader take in?

    python -m benchmarks.heartbeats [--seconds 5] [--smallest]

*Size*: five nodes share a table of two replicas a slot, placed by the slot policy ``minimal``; then one dies, which is
when the others hold most. Baseline: one status for each slot, as below feature level 3. The limit is that of a record;
a heartbeat that exceeds it is sent with one time of sync for each status, and below feature level 3 with the slots that
are ready alone.

*Intake*: a leader reads, decodes, checks and observes heartbeats and looks for decisions, on one core and without
Kafka. Target: 30,000 heartbeats/s with 16 slots each, which lie at random in a table of 1,024.
"""

import argparse
import random
import time
from typing import Final

from benchmarks.command_line import parsed
from benchmarks.intake import joined_state
from benchmarks.quiet import only_warnings
from controlplane.codec.conversion import to_datum
from controlplane.codec.framing import default_framing
from controlplane.codec.inputs import MAX_RECORD_BYTES, decode_input, encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.deciding.decide import decide
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules
from controlplane.core.slots.minimal.planner import plan
from controlplane.core.slots.reports import SlotGroup, SlotSettings, SlotStatus, grouped
from controlplane.core.slots.table import Slot, empty_table, without_nodes
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.ports import RawRecord

TARGET_RATE_PER_S: Final = 30_000
SMALLEST: Final = {"seconds": 0.05, "slot_counts": [1_024]}
_WALL_MS: Final = 1_700_000_000_000
_NODES: Final = ("n1", "n2", "n3", "n4", "n5")
_BATCH: Final = 2_000
_INTAKE_NODES: Final = 200


def main() -> None:
    """Print the sizes for each number of slots, then the rates for each way of writing statuses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--slot-counts", type=int, nargs="+", default=[1_024, 32_768, 131_072])
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parsed(parser, SMALLEST)
    only_warnings()
    print("slots      replicas of a node   one by one, bytes   in groups, bytes   ratio   limit")
    for slot_count in options.slot_counts:
        _print_sizes(slot_count)
    print("heartbeats with 16 slots")
    for name, grouping in (("one by one", False), ("in groups", True)):
        rate_per_s = _intake_per_s(options.seconds, grouping=grouping)
        print(f"  {name:10} {rate_per_s:10,.0f} heartbeats/s   target {TARGET_RATE_PER_S:,}", flush=True)


def _print_sizes(slot_count: int) -> None:
    table = _placed(_placed(empty_table(slot_count), _NODES, 1), _NODES[1:], 2)
    largest = (0, 0, 0)
    for name in _NODES[1:]:
        held = [slot for slot in table if name in slot.replicas]
        one_by_one, in_groups = (_size_bytes(_heartbeat(name, held, slot_count, grouping=way)) for way in (False, True))
        largest = max(largest, (len(held), one_by_one, in_groups))
    replicas, before, after = largest
    print(
        f"{slot_count:7,} {replicas:18,} {before:20,} {after:18,} {after / before:10.3f} {MAX_RECORD_BYTES:9,}",
        flush=True,
    )


def _placed(table: tuple[Slot, ...], names: tuple[str, ...], epoch: int) -> tuple[Slot, ...]:
    """The table of these nodes."""
    previous = without_nodes(table, frozenset(_NODES) - frozenset(names))
    nodes = tuple(PlacementNode(name, 1, 0, "") for name in names)
    rules = PlacementRules(replica_count=2, zone_rule=ZoneRule.IGNORED, replicas_per_zone=1, tolerance_percent=0)
    return plan(PlacementProblem(previous, nodes, rules, Epoch(epoch))).applied_to(previous)


def _heartbeat(name: str, held: list[Slot], slot_count: int, *, grouping: bool) -> Heartbeat:
    """A heartbeat of a node that has the data of every slot."""
    statuses: tuple[SlotStatus, ...] = ()
    groups: tuple[SlotGroup, ...] = ()
    if grouping:
        groups = grouped((slot.slot_id, ReplicaStatus.HEALTHY, _WALL_MS) for slot in held)
    else:
        statuses = tuple(_status(name, slot) for slot in held)
    settings = SlotSettings(slot_count, 2, "crc32c")
    return Heartbeat(name, 1, _WALL_MS, Epoch(2), NodeRole.DATA, settings, statuses, (), groups)


def _status(name: str, slot: Slot) -> SlotStatus:
    leads = slot.leader == name
    return SlotStatus(slot.slot_id, slot.leader_epoch, leads, ReplicaStatus.HEALTHY, 0 if leads else _WALL_MS)


def _size_bytes(beat: Heartbeat) -> int:
    """The size without the limit, which ``encode_input`` applies."""
    return len(default_framing().encode("Heartbeat", to_datum(beat)))


def _intake_per_s(seconds: float, *, grouping: bool) -> float:
    """Heartbeats per second from bytes to a look for decisions, in batches as a leader reads them."""
    choose = random.Random(5)
    state = joined_state(_INTAKE_NODES)
    values = []
    for number in range(_INTAKE_NODES):
        name = f"node-{number}"
        slot_ids = sorted(choose.sample(range(1_024), 16))
        held = [Slot(SlotId(slot_id), choose.choice([name, "other"]), (), Epoch(1)) for slot_id in slot_ids]
        values.append((name.encode(), encode_input(_heartbeat(name, held, 1_024, grouping=grouping))))
    tick = encode_input(Tick("bench", 0))
    observations, offset, done = Observations(), 0, 0
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < seconds:
        raws = [RawRecord(HEARTBEATS, 0, offset, offset, b"bench", tick)]
        for index in range(_BATCH):
            key, value = values[index % _INTAKE_NODES]
            raws.append(RawRecord(HEARTBEATS, 0, offset + 1 + index, offset, key, value))
        offset += len(raws)
        observations = observe(observations, [decode_input(HEARTBEATS, raw) for raw in raws])
        observations = decide(state, observations).observations
        done += _BATCH
    return done / (time.perf_counter() - began_s)


if __name__ == "__main__":
    main()
