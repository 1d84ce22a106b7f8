"""Record what a live cluster under the policy ``sofa`` decided, in the format of the recorded answers.

    python -m tests.conformance.record --cluster NAME --bootstrap-servers HOST:PORT OUT.jsonl.gz
    python -m tests.conformance sofa OUT.jsonl.gz

One line for each tick of the arranger that the decision log tells of: table, nodes in their order, whether the slots
were in sync, and what became of the table. Forced refreshes have no recorded answers to be compared with and are left
out.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from controlplane.bootstrap.connections import open_source
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.slots.policies.sofa import REFRESH
from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaTable
from controlplane.core.verification.holders import expected_owners
from controlplane.core.verification.sofa_ticks import REFUSED, RecordedTick, recorded_tick
from controlplane.errors import PlacementRefusedError
from controlplane.inspection.readers import read_decisions
from tests.conformance.sofa import ERRORS, Document, ask


def ticks(decisions: Iterable[Decision]) -> Iterator[tuple[Decision, RecordedTick]]:
    """Every tick of a whole decision log with its decision."""
    state = State()
    for decision in decisions:
        before, state = state, apply_decision(state, decision)
        living = expected_owners(state)
        tick = recorded_tick(before, decision, state, living)
        if tick is not None:
            yield decision, tick


def lines(decisions: Iterable[Decision]) -> Iterator[Document]:
    """The same as lines of the recorded answers' format."""
    for decision, tick in ticks(decisions):
        if tick.action != REFRESH:
            given = _input(tick)
            yield {"id": f"seq-{decision.seq}", "op": "arrange", "input": given, "output": _output(tick, given)}


def table_document(table: SofaTable) -> Document:
    """A table as the recorded answers have it."""
    slots = [
        {
            "id": slot.slot_id,
            "leader": slot.leader,
            "leaderEpoch": slot.leader_epoch,
            "followers": list(slot.followers),
        }
        for slot in table.slots.values()
    ]
    return {"epoch": table.epoch, "slots": slots}


def _input(tick: RecordedTick) -> Document:
    numbers = tick.settings.numbers
    return {
        "slotNum": tick.settings.slot_count,
        "replicas": tick.settings.replicas,
        "protectionNum": tick.settings.protected_nodes,
        "thresholdPercent": numbers.threshold_percent,
        "maxLeaderMoves": numbers.max_leader_moves,
        "maxFollowerMoves": numbers.max_follower_moves,
        "dataServers": list(tick.nodes),
        "stable": tick.stable,
        "table": None if tick.before == INITIAL_TABLE else table_document(tick.before),
    }


def _output(tick: RecordedTick, given: Document) -> Document:
    if tick.action == REFUSED:
        try:
            ask(given)
        except PlacementRefusedError as error:  # the log has the sentence, the recorded answers have the class
            return {"error": {"type": ERRORS[type(error)]}}
    return {
        "action": tick.action,
        "modified": tick.published,
        "table": table_document(tick.after),
        "valid": all(slot.leader and slot.leader not in slot.followers for slot in tick.after.slots.values()),
    }


def main(arguments: list[str]) -> int:
    """Run; the answer is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.record", description=__doc__.splitlines()[0])
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args(arguments)
    source = open_source(ClusterConfig(chosen.cluster), KafkaConfig(chosen.bootstrap_servers))
    try:
        recorded = list(lines(logged.decision for logged in read_decisions(source)))
    finally:
        source.close()
    with gzip.open(chosen.out, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in recorded)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
