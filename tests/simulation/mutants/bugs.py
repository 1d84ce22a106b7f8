"""The bugs. Each is taken from a defect, or a near defect, of a similar system. The names say what is forgotten."""

from typing import Final

from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.scenes import (
    a_node_hears_nothing_of_a_move,
    a_node_is_heard_again_before_it_reads,
    a_node_restarts_on_a_slower_clock,
    a_reader_lags_over_a_compaction,
    nodes_go_to_partitions_that_are_added,
    nodes_stand_still_beyond_their_limit,
    the_brokers_clock_is_set_forward,
)

MUTANTS: Final = (
    Mutant(
        "skips the term check: leads under a term that the log holds already",
        "controlplane.service.takeover:read_log",
        "return components.follower.state.term",
        "return Term(0)",
    ),
    Mutant(
        "forgets the floor: the store grants a term without a look at what the log holds",
        "controlplane.core.election.lease:Lease.acquired",
        "max(self.term, floor) + 1",
        "self.term + 1",
    ),
    Mutant(
        "keeps a stale floor: what the log holds is never told to the election",
        "controlplane.service.controller:Controller._raise_floor",
        "self._keeper.raise_floor(log_term)",
        "pass",
    ),
    Mutant(
        "gives the lease to everybody who asks",
        "controlplane.core.election.lease:Lease.acquired",
        "if self.holder(now_ms) and not self.is_held_by(now_ms, owner, process):",
        "if False:",
    ),
    Mutant(
        "does not fence its predecessor",
        "controlplane.testing.memory_broker:MemoryBroker.init_transactions",
        "producer.epoch += 1",
        "producer.epoch = 1",
    ),
    Mutant(
        "leads before it has read the log to its end",
        "controlplane.service.follower:LogFollower.read_to_end",
        "while not self.poll(50):",
        "while False:",
    ),
    Mutant(
        "goes on after it was fenced: opens its writer again and commits",
        "tests.simulation.clients:SimulatedTransactionalWriter.commit",
        "self._machine.latency()",
        "\n    if outcome is CommitOutcome.FENCED:\n        self.open()\n        outcome = self._inner.commit(records)",
    ),
    Mutant(
        "commits again what has no answer yet",
        "tests.simulation.clients:SimulatedTransactionalWriter.commit",
        "self._machine.latency()",
        "\n    if outcome is CommitOutcome.UNKNOWN:\n"
        "        self._inner._transaction = self._inner._unsent = None\n"
        "        outcome = CommitOutcome.ABORTED",
    ),
    Mutant(
        "takes its decision for committed before Kafka has said so",
        "controlplane.service.leadership:Leadership.commit",
        "began_at_ms = self._clock.monotonic_ms()",
        "began_at_ms = self._clock.monotonic_ms()\n    self.state = sealed.state",
    ),
    Mutant(
        "commits positions ahead of the inputs that it took up",
        "controlplane.core.deciding.decide:_positions",
        "return positions",
        "return {place: offset + (place.topic == INTENTS and offset > 0) for place, offset in positions.items()}",
    ),
    Mutant(
        "counts an intent again that was answered",
        "controlplane.core.operations.intent_effects:take_intents",
        "not draft.state.intents.has_answered(intent.intent_id)",
        "intent.intent_id",
    ),
    Mutant(
        "fences by the wall clock",
        "controlplane.core.deciding.expiry:silent_nodes",
        "silence_ms = min(silence_ms, observations.membership_ms(node_id, node.incarnation, *since))",
        "heard_ms = [view.heard[node_id, node.incarnation].append_time_ms for view in observations.partitions.values()"
        " if (node_id, node.incarnation) in view.heard]\n"
        "        silence_ms = observations.now_ms - max(heard_ms) if heard_ms else silence_ms",
    ),
    Mutant(
        "counts a gap between two ticks in full",
        "controlplane.core.membership.log_time:_gap_ms",
        "min(max(append_time_ms - last_tick_ms, 0), MAX_TICK_GAP_MS)",
        "max(append_time_ms - last_tick_ms, 0)",
        scene=the_brokers_clock_is_set_forward,
    ),
    Mutant(
        "counts silence from its take-over",
        "controlplane.service.takeover:TakeOver.catch_up",
        "components.input_reader.catch_up(ends)",
        "components.input_reader.catch_up(ends)\n"
        "    from controlplane.core.deciding.observations import Observations\n"
        "    reader = components.input_reader\n"
        "    reader._observations = Observations(positions=reader.observations.positions)",
    ),
    Mutant(
        "lets a reader see what is not committed",
        "tests.simulation.clients:SimulatedReader.__init__",
        "self._inner = MemoryLogReader(",
        "from tests.simulation.mutants.uncommitted import UncommittedReader\n    self._inner = UncommittedReader(",
    ),
    Mutant(
        "swaps tables before the marker",
        "controlplane.core.routing.replica:TableReplica.fold",
        "        self._rows.put(name, row)\n    return None",
        "        self._rows.put(name, row)\n    if self._shown is not None and isinstance(row, Slot):\n"
        "        from dataclasses import replace\n"
        "        slots = self._rows.slots(len(self._shown.slots))\n"
        "        self._shown = replace(self._shown, slots=slots, epoch=self._shown.epoch + 1)\n"
        "        return self._shown\n    return None",
    ),
    Mutant(
        "takes a marker whose digest does not fit",
        "controlplane.core.routing.topic_image:TopicImage.mark",
        "confirms = is_counted and SETTINGS_KEY in self._hashes",
        "confirms = True",
        scene=a_reader_lags_over_a_compaction,
    ),
    Mutant(
        "serves after its limit",
        "controlplane.core.session.node_session:NodeSession.serve_until_ms",
        "return min(acknowledged_ms + self._good_for_ms, known_at_ms + self._table_good_for_ms)",
        "return FOREVER_MS",
        scene=nodes_stand_still_beyond_their_limit,
    ),
    Mutant(
        "serves by a reading of the table of whatever age",
        "controlplane.core.session.node_session:NodeSession.serve_until_ms",
        "known_at_ms + self._table_good_for_ms",
        "FOREVER_MS",
        scene=a_node_hears_nothing_of_a_move,
    ),
    Mutant(
        "serves again before it has read the table again",
        "controlplane.core.session.node_session:NodeSession._acknowledged",
        "return [ConfirmTable(now_ms)] if now_ms < self._deadline_ms() else []",
        "if now_ms < self._deadline_ms():\n"
        "        self.table_known_at_ms = now_ms\n"
        "        if self.state is SessionState.LOST_LOG:\n"
        "            self._move(now_ms, SessionTrigger.LOG_BACK)\n    return []",
        scene=a_node_is_heard_again_before_it_reads,
    ),
    Mutant(
        "takes its clock for its incarnation",
        "controlplane.core.session.node_session:NodeSession.on_event",
        "max(wall_ms, last_known + 1)",
        "wall_ms",
        scene=a_node_restarts_on_a_slower_clock,
    ),
    Mutant(
        "takes nodes for dead before it looks for partitions that were added",
        "controlplane.service.leadership:Leadership.decide",
        "lacks_partitions = self._input_reader.lacks_partitions()",
        "lacks_partitions = False",
        scene=nodes_go_to_partitions_that_are_added,
    ),
    Mutant(
        "ends when a lease store that it knows begins to refuse",
        "controlplane.service.lease_keeper:LeaseKeeper._perform",
        "if not self._has_answered:",
        "if True:",
    ),
    Mutant(
        "leaves a table alone over which others have written",
        "controlplane.service.leadership:Leadership.watch_table",
        "if self._unresolved is not None or self._repair_due is not None:",
        "if watch is not None:",
    ),
    Mutant(
        "leaves foreign keys in the table that it repairs",
        "controlplane.service.publisher:TablePublisher.whole_table",
        "sorted({*self._row_hashes, *_in_one_transaction(others)})",
        "[]",
    ),
    Mutant(
        "ends at a record of the log that cannot be read",
        "controlplane.service.follower:LogFollower._fold",
        "self.point = replace(self.point, next_offset=record.offset + 1)",
        "raise AssertionError",
    ),
    Mutant(
        "ends at a row that cannot be read",
        "controlplane.topic_reading.table_follower:_decoded",
        'is_newer = error.reason == "unknown_fingerprint"',
        "raise",
    ),
    Mutant(
        "takes a marker of another log for its own",
        "controlplane.core.routing.topic_image:TopicImage.mark",
        'if self.log_id not in {"", marker.log_id}:',
        "if False:",
    ),
    Mutant(
        "ignores the log's id",
        "controlplane.core.log.identity:check_identity",
        "marker = image.last_marker",
        "return",
        recreated=True,
    ),
)
