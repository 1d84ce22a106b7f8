"""Bugs in nodes and in what reads the routing table, and where each shows."""

from typing import Final

from tests.simulation.mutants.broker_scenes import the_tables_marker_is_late
from tests.simulation.mutants.forgetting_scenes import a_node_stands_still_until_it_is_forgotten
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.node_scenes import a_node_is_fenced_and_comes_back
from tests.simulation.mutants.scenes import (
    a_node_hears_nothing_of_a_move,
    a_node_is_heard_again_before_it_reads,
    a_node_on_a_slow_clock_is_cut_off,
    a_node_restarts_on_a_slower_clock,
    a_reader_lags_over_a_compaction,
    a_writer_of_heartbeats_is_stuck,
    heartbeats_are_larger_than_a_record_may_be,
    load_reports_wait_for_a_dead_broker,
    nodes_stand_still_beyond_their_limit,
)

MUTANTS: Final = (
    Mutant(
        "ends for good when it is fenced",
        "controlplane.core.session.node_session:NodeSession._standing",
        "if not row.is_of(self.incarnation, self._process_id):",
        "if row.status is NodeStatus.FENCED:",
        scene=a_node_is_fenced_and_comes_back,
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
        "sends load reports over the connection of its heartbeats",
        "controlplane.node.agent:NodeAgent.__init__",
        "LoadThread(self._shared, self._session, load_reports).run",
        "LoadThread(self._shared, self._session, type(load_reports)(load_reports.source, writer, 500)).run",
        scene=load_reports_wait_for_a_dead_broker,
    ),
    Mutant(
        "sends every heartbeat by the same writer",
        "controlplane.node.alternating_writer:AlternatingWriter.send",
        "self._is_turn_of_second = not self._is_turn_of_second",
        "pass",
        scene=a_writer_of_heartbeats_is_stuck,
    ),
    Mutant(
        "waits a whole interval after a heartbeat that is not acknowledged",
        "controlplane.core.session.node_session:NodeSession._next_heartbeat_at_ms",
        "return min(self._heartbeat_at_ms, self._sent_at_ms + self._good_for_ms // _AGAIN_DIVISOR)",
        "return self._heartbeat_at_ms",
        scene=a_writer_of_heartbeats_is_stuck,
    ),
    Mutant(
        "ends at a heartbeat that is too large",
        "controlplane.node.sending:SizeLimitedSender.send",
        "if error.reason != _TOO_LARGE:",
        "if True:",
        scene=heartbeats_are_larger_than_a_record_may_be,
    ),
    Mutant(
        "stops the same margin before every silence limit",
        "controlplane.core.session.silence:valid_for_ms",
        "max(margin_ms, -(-silence_limit_ms // LEAST_MARGIN_DIVISOR))",
        "margin_ms",
        scene=a_node_on_a_slow_clock_is_cut_off,
    ),
    Mutant(
        "takes its clock for its incarnation",
        "controlplane.core.session.node_session:NodeSession.on_event",
        "max(wall_ms, last_known + 1)",
        "wall_ms",
        scene=a_node_restarts_on_a_slower_clock,
    ),
    Mutant(
        "asks for ever with an incarnation that was forgotten",
        "controlplane.core.session.node_session:NodeSession._due",
        "max(self.incarnation, self._floor + 1)",
        "self.incarnation",
        scene=a_node_stands_still_until_it_is_forgotten,
    ),
    Mutant(
        "takes the table for the newest one at an end where a marker is missing",
        "controlplane.topic_reading.table_follower:TableFollower.step",
        "ended and self._fresh.holds_at(read_to)",
        "ended",
        scene=the_tables_marker_is_late,
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
)
