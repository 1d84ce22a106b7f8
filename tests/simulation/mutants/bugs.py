"""The bugs. Each is taken from a defect, or a near defect, of a similar system. The names say what is forgotten."""

from typing import Final

from tests.simulation.mutants.deafness_bugs import MUTANTS as DEAFNESS_MUTANTS
from tests.simulation.mutants.election_bugs import MUTANTS as ELECTION_MUTANTS
from tests.simulation.mutants.forgetting_scenes import (
    a_name_comes_back_as_it_was,
    a_node_stands_still_until_it_is_forgotten,
)
from tests.simulation.mutants.handoff_bugs import MUTANTS as HANDOFF_MUTANTS
from tests.simulation.mutants.log_scenes import (
    a_contender_asks_former_brokers,
    a_contender_wakes_behind_a_successor,
    a_leader_asks_former_brokers,
    letters_have_no_place,
    markers_are_late,
    the_log_loses_its_end,
    the_log_loses_its_last_decision,
)
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.node_scenes import (
    a_cluster_runs_for_a_minute,
    a_limit_falls_while_a_node_is_cut_off,
    a_node_dies_in_a_quiet_cluster,
    a_process_takes_the_place_of_another_while_nothing_may_move,
    an_intent_comes_in_a_quiet_cluster,
)
from tests.simulation.mutants.outage_scenes import (
    kafka_comes_back_before_it_is_read,
    kafka_goes_while_a_leader_asks_for_partitions,
    kafka_goes_while_a_leader_reads_back,
    kafka_goes_while_a_leader_takes_partitions_in,
)
from tests.simulation.mutants.reader_bugs import MUTANTS as READER_MUTANTS
from tests.simulation.mutants.scenes import (
    a_machine_is_suspended,
    a_node_dies_right_after_joining,
    a_node_is_started_twice_at_once,
    nodes_are_silent_in_turn,
    nodes_die_in_turn,
    nodes_go_to_partitions_that_are_added,
    senders_date_their_heartbeats,
    the_brokers_clock_is_set_forward,
    the_whole_fleet_is_cut_off,
)
from tests.simulation.mutants.start_scenes import controllers_start_with_clocks_behind

MUTANTS: Final = (
    *READER_MUTANTS,
    *DEAFNESS_MUTANTS,
    *HANDOFF_MUTANTS,
    *ELECTION_MUTANTS,
    Mutant(
        "takes its own clock for the brokers' when it starts",
        "controlplane.service.input_reader:InputReader.start",
        "first_positions(reader, state, times_ms)",
        "first_positions(reader, state, dict.fromkeys(times_ms, self._clock.wall_ms()))",
        scene=controllers_start_with_clocks_behind,
    ),
    Mutant(
        "takes the end that a broker reports for the end of the log: leads without a barrier",
        "controlplane.service.takeover:TakeOver.open_writer",
        "self._barrier = self._write_barrier()",
        "self._barrier = {}",
        scene=a_contender_asks_former_brokers,
    ),
    Mutant(
        "takes decisions for lost whose end is not marked yet",
        "controlplane.service.read_back:ReadBack._needs_barrier",
        "if end is not None and end.awaits_marker:",
        "check_committed(self._follower.state, led)\n    if False:",
        scene=markers_are_late,
    ),
    Mutant(
        "takes decisions for lost that a broker which lags does not know",
        "controlplane.service.read_back:ReadBack.look",
        "self._follower.read_to_end(READ_LIMIT_MS, self._stall_limit_ms, barrier)",
        "pass",
        scene=a_leader_asks_former_brokers,
    ),
    Mutant(
        "commits nothing before every dead letter is written",
        "controlplane.service.leadership:Leadership.commit",
        "check_step(self.state, sealed.decision, sealed.state, self._slot_policies)",
        "check_step(self.state, sealed.decision, sealed.state, self._slot_policies)\n"
        "    self._dead_letters.flush(2_000)\n"
        "    if self._dead_letters.unwritten:\n"
        "        raise LogUnavailableError('some dead letters are not written yet')",
        scene=letters_have_no_place,
    ),
    Mutant(
        "counts a dead letter twice that Kafka did not take at once",
        "controlplane.service.dead_letters:DeadLetterWriter._on_delivery",
        "self._in_flight -= 1",
        "self._in_flight -= delivery.error is None",
        seed=19,
    ),
    Mutant(
        "leads on a log that has lost its end, and asks nobody how far it went",
        "controlplane.core.log.log_mark:check_known_end",
        "for where, mark in known:",
        "for where, mark in ():",
        scene=the_log_loses_its_end,
    ),
    Mutant(
        "commits behind a decision that it remembers, and the log has lost",
        "controlplane.service.follower:LogFollower.read_to_end",
        "if barrier and known.state.seq:",
        "if False:",
        scene=the_log_loses_its_last_decision,
    ),
    Mutant(
        "takes a log for one without its end that a successor has written to",
        "controlplane.service.takeover:TakeOver._require_end_of_log",
        "self._barrier = self._write_barrier()",
        "pass",
        scene=a_contender_wakes_behind_a_successor,
    ),
    Mutant(
        "takes the senders' times for the broker's",
        "controlplane.testing.memory_log:MemoryLogReader._read",
        "record.is_append_time,",
        "True,",
        scene=senders_date_their_heartbeats,
    ),
    Mutant(
        "goes on after it was fenced: opens its writer again and commits",
        "tests.simulation.clients:SimulatedTransactionalWriter.commit",
        "self._machine.latency()",
        "\n    if outcome is CommitOutcome.FENCED:\n        self.open()\n        outcome = self._inner.commit(records)",
        seed=18,
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
        "silence_ms = min(silence_ms, _time_to_be_heard_ms(state, observations, node))",
        "member = node.node_id, node.incarnation\n"
        "        views = [view for view in observations.partitions.values() if member in view.heard]\n"
        "        heard_ms = [view.heard[member].append_time_ms for view in views]\n"
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
        "allows one fencing in every decision, whatever its window has seen",
        "controlplane.core.deciding.expiry:take_expiries",
        "max(allowed, 0)",
        "max(allowed, 1)",
        scene=nodes_die_in_turn,
    ),
    Mutant(
        "fences every silent node at its limit, before the others of a cut are silent too",
        "controlplane.core.deciding.expiry:take_expiries",
        "if overridden or silence_ms > limit_ms",
        "if overridden or silence_ms <= limit_ms or limit_ms",
        scene=the_whole_fleet_is_cut_off,
    ),
    Mutant(
        "forgets that a node was fenced as soon as it is back",
        "controlplane.core.deciding.expiry:_fenced_within_window",
        "if at_ms >= since_ms",
        "if at_ms >= since_ms and not state.membership.nodes[member[0]].lives",
        scene=nodes_are_silent_in_turn,
    ),
    Mutant(
        "takes the greatest append time of any partition for log time",
        "controlplane.core.deciding.log_clock:log_time_ms",
        "if not state.cluster.has_several_brokers_rules:",
        "if True:",
    ),
    Mutant(
        "dates an admission by append times of another partition",
        "controlplane.core.deciding.expiry:_time_to_be_heard_ms",
        "if state.cluster.has_several_brokers_rules:",
        "if False:",
        scene=a_node_dies_right_after_joining,
    ),
    Mutant(
        "looks for the dead only while something else is to be decided",
        "controlplane.core.deciding.expiry:silent_nodes",
        "if silence_ms > state.cluster.silence_limit_ms:",
        "if observations.pending and silence_ms > state.cluster.silence_limit_ms:",
        scene=a_node_dies_in_a_quiet_cluster,
    ),
    Mutant(
        "takes up intents only under a frozen fleet",
        "controlplane.core.operations.intent_effects:take_intents",
        "elif not draft.state.intents.has_answered(intent.intent_id):",
        "elif draft.state.membership.evictions_frozen:",
        scene=an_intent_comes_in_a_quiet_cluster,
    ),
    Mutant(
        "lets a silence limit fall before every node knows of it, or has stopped",
        "controlplane.core.deciding.expiry:release_former_silence_limit",
        "evidence = _every_member_knows(draft.state, observations, former)",
        'evidence = "at once"',
        scene=a_limit_falls_while_a_node_is_cut_off,
    ),
    Mutant(
        "fences on while it says that evictions are frozen",
        "controlplane.core.deciding.expiry:take_expiries",
        "if not _go_on(draft, silent, max(allowed, 0), overridden=overridden):",
        "if not _go_on(draft, silent, max(allowed, 0), overridden=overridden) and not silent:",
        scene=the_whole_fleet_is_cut_off,
    ),
    Mutant(
        "forgets no tick",
        "controlplane.core.membership.log_time:_recent",
        "return timed[first:] if first > 0 else timed",
        "return timed",
        scene=a_cluster_runs_for_a_minute,
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
        "leaves a new process the former one's slots under the former token",
        "controlplane.core.slots.table:raise_leader_epochs",
        "if slot.leader in renewed",
        "if False",
        scene=a_process_takes_the_place_of_another_while_nothing_may_move,
    ),
    Mutant(
        "takes another process of its incarnation for itself",
        "controlplane.core.membership.node:are_two_processes",
        'return "" not in (one, other) and one != other',
        "return False",
        scene=a_node_is_started_twice_at_once,
    ),
    Mutant(
        "does not count the time for which its machine is suspended",
        "controlplane.adapters.system_clock:ElapsedTime.ms",
        "return max(",
        "return min(",
        scene=a_machine_is_suspended,
    ),
    Mutant(
        "admits a forgotten name with the incarnation that it had",
        "controlplane.core.deciding.admission:_join",
        "elif joined.incarnation <= draft.state.cluster.incarnation_floor:",
        "elif False:",
        scene=a_name_comes_back_as_it_was,
    ),
    Mutant(
        "never forgets a node",
        "controlplane.core.deciding.decide:decide",
        "forget_nodes_gone_for_long(draft, now_ms)",
        "pass",
        scene=a_node_stands_still_until_it_is_forgotten,
    ),
    Mutant(
        "takes nodes for dead before it looks for partitions that were added",
        "controlplane.service.leadership:Leadership.decide",
        "if self._input_reader.lacks_partitions():",
        "if False:",
        scene=nodes_go_to_partitions_that_are_added,
    ),
    Mutant(
        "takes the time for which it waited for Kafka for one in which it stood still",
        "controlplane.service.ticker:Ticker.stood_still_ms",
        "return longest_ms if wakes_at_ms is None else",
        "return self._clock.monotonic_ms() - self._acknowledged_at_ms if wakes_at_ms else",
        scene=kafka_goes_while_a_leader_asks_for_partitions,
    ),
    Mutant(
        "steps down because partitions that were added cannot be read now",
        "controlplane.service.leadership:Leadership.decide",
        "except LogUnavailableError as error:",
        "except ZeroDivisionError as error:",
        scene=kafka_goes_while_a_leader_takes_partitions_in,
    ),
    Mutant(
        "steps down because its own decisions cannot be read back now",
        "controlplane.service.read_back:ReadBack._put_off",
        "if is_acknowledged():",
        "if True:",
        scene=kafka_goes_while_a_leader_reads_back,
    ),
    Mutant(
        "expects to read as soon as Kafka acknowledges again",
        "controlplane.core.election.leading:ControllerMachine._contact_of",
        "if self._reading_expected_from_ms is not None:",
        "if False:",
        scene=kafka_comes_back_before_it_is_read,
    ),
    Mutant(
        "ends when a lease store that it knows begins to refuse",
        "controlplane.service.lease_keeper:LeaseKeeper._perform",
        "if not self._has_answered:",
        "if True:",
        seed=17,
    ),
    Mutant(
        "leaves a table alone over which others have written",
        "controlplane.service.leadership:Leadership.watch_table",
        "if self._unresolved is not None or self._repair_due is not None:",
        "if watch is not None:",
        seed=54,
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
        "ignores the log's id",
        "controlplane.core.log.identity:check_identity",
        "marker = image.last_marker",
        "return",
        recreated=True,
    ),
)
