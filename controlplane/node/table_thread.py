"""The agent's thread that follows the table and keeps the record of what the node holds."""

from typing import Final

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.messages import TableChanged, TableConfirmed, TableRead
from controlplane.errors import LogUnavailableError
from controlplane.node.bundle_calls import BundleCalls
from controlplane.node.last_incarnation import last_incarnation
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.slot_calls import SlotCalls
from controlplane.ports import LogReader
from controlplane.topic_reading.table_follower import Progress, TableFollower

_POLL_MS: Final = 100
_RETRY_S: Final = 0.2
_WARN_EVERY_MS: Final = 5_000
"""The interval of warnings while there is no table. A node that is started with its controllers gives none."""


class TableThread:
    """Passes the node's row to the session, and confirms the table when the session asks for it."""

    def __init__(
        self,
        shared: Shared,
        reader: LogReader,
        session: SessionThread,
        slot_calls: SlotCalls,
        bundle_calls: BundleCalls,
    ) -> None:
        """Set up; :meth:`run` begins to read. :meth:`close` closes the reader."""
        self._shared = shared
        self._reader = reader
        self._session = session
        self._slot_calls = slot_calls
        self._bundle_calls = bundle_calls
        self._follower = TableFollower(reader)
        self._warn_at_ms: int | None = None
        self._was_empty = False

    def close(self) -> None:
        """Close the reader."""
        self._follower.close()

    def run(self) -> None:
        """Follow the table until the agent is to stop."""
        read_once = False
        asked_at_ms: int | None = None
        while not self._shared.stopping.is_set():
            asked_at_ms = self._confirmation_wanted(asked_at_ms)
            try:
                progress = self._follower.step(_POLL_MS)
            except LogUnavailableError as error:
                epoch = self._shared.book.epoch
                self._shared.logger.warning("routing table unavailable", error=str(error), epoch=epoch)
                self._shared.stopping.wait(_RETRY_S)
                continue
            self._shared.metrics.foreign_records.set(self._follower.foreign.total)
            if not read_once:
                table = self._newest_table(progress)
                if table is None:
                    continue
                read_once = True
                self._first_table(table)
            else:
                for table in progress.tables:
                    self._take(table)
            if progress.confirms and asked_at_ms is not None:
                self._session.tell(TableConfirmed(asked_at_ms))
                asked_at_ms = None

    def _confirmation_wanted(self, asked_at_ms: int | None) -> int | None:
        """The reading that is in progress, or the next one; later requests do not restart a reading in progress."""
        confirmations = self._session.confirmations
        if asked_at_ms is None and not confirmations.empty():
            while not confirmations.empty():
                asked_at_ms = confirmations.get()
            self._follower.fetch_anew()
        return asked_at_ms

    def _newest_table(self, progress: Progress) -> RoutingTable | None:
        """The table at the end of the topic; None while there is none, or while it is not read to its end."""
        table = self._follower.table
        if table is not None and progress.ended:
            return table
        if table is not None and self._was_empty:
            # The empty topic has had its end, and Kafka reports no further one while a leader keeps writing.
            self._follower.ask_for_end()
        self._was_empty = table is None and (self._was_empty or progress.ended)
        if self._was_empty or self._follower.awaits_repair:
            self._warn_without_table()
        return None

    def _warn_without_table(self) -> None:
        """Warn at intervals while the topic holds no whole table.

        The node does not join before: the feature level in the table says whether a join may name the process.
        """
        now_ms = self._shared.clock.monotonic_ms()
        if self._warn_at_ms is not None:
            if now_ms < self._warn_at_ms:
                return
            text = "no whole routing table yet, so the node does not ask to be admitted: is there a leader?"
            self._shared.logger.warning(text, foreign_records=self._follower.foreign.total)
        self._warn_at_ms = now_ms + _WARN_EVERY_MS

    def _first_table(self, table: RoutingTable) -> None:
        node_id, stopping = self._shared.node.node_id, self._shared.stopping
        self._shared.feature_level = table.settings.feature_level
        known = max(last_incarnation(self._reader, node_id, stopping), table.settings.incarnation_floor)
        self._follower.fetch_anew()
        row = table.nodes.get(node_id)
        if row is not None:
            known = max(known, row.incarnation)
            if row.status.lives:
                text = "takes the place of another process of this node; if it still runs, give it another node id"
                self._shared.logger.warning(text, other_incarnation=row.incarnation)
        self._session.tell(TableRead(known, self._shared.clock.wall_ms()))
        while not self._session.incarnation_known.wait(_RETRY_S):
            if stopping.is_set():
                return
        self._take(table)

    def _take(self, table: RoutingTable) -> None:
        book, bundles, metrics = self._shared.book, self._shared.bundles, self._shared.metrics
        self._shared.feature_level = table.settings.feature_level
        # Bundles first: a heartbeat that names the epoch says that the node has read what the table wants of them.
        bundles.follow(table, self._session.incarnation, self._shared.clock.monotonic_ms())
        changes = book.follow(table, self._session.incarnation, self._shared.clock.monotonic_ms())
        # Now: a step counts only in a heartbeat that names the epoch of its row.
        self._bundle_calls.wake()
        leads, follows = book.count()
        row = table.nodes.get(self._shared.node.node_id)
        self._session.tell(TableChanged(row, table.settings.silence_limit_ms, table.settings.incarnation_floor))
        metrics.epoch.set(table.epoch)
        metrics.slots_led.set(leads)
        metrics.slots_followed.set(follows)
        metrics.bundles.set(bundles.count())
        self._slot_calls.follow(table, changes)
