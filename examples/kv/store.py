"""A node's data of each slot, and the rules by which it answers requests under the slot's present row.

This module uses no network and no clock. An acknowledged PUT is never lost while one replica that counts as complete
lives:

- Only the slot leader accepts a PUT. It copies the PUT to every follower of the row before it acknowledges it.
- A new slot leader fetches before it serves. Its FETCH carries the new slot leader epoch. A node that receives it first
  stops accepting PUTs and older COPYs for the slot, also if it does not hold the slot yet. An older leader therefore
  acknowledges nothing that the new leader lacks.
- A holder knows the ranges of epochs for which it has every acknowledged PUT. It is complete once they adjoin from the
  beginning to the present: a node that held the slot some time ago lacks later PUTs, which others may have. A range
  stays known when the slot is lost and gained again, because then two nodes may have half of the ranges each.
- A follower fetches from its leader, and only once the leader's table shows it as a follower. PUTs after the fetch are
  then copied to it.
- The version (slot leader epoch, counter) decides between values of one key, so COPYs and fetched values may arrive in
  any order.

A fencing token is (term, slot leader epoch). Epochs are ordered across terms by the log, so the slot leader epoch alone
decides which of two tokens is newer. The term is for human readers.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

GRACE_S: Final = 60.0
"""How long the data of a lost slot stays readable for the nodes that gained it."""


class Token(NamedTuple):
    """A fencing token, which names one leadership of the slot."""

    term: int
    leader_epoch: int


class Version(NamedTuple):
    """Orders the values of one key."""

    leader_epoch: int
    counter: int


_NO_VERSION: Final = Version(0, 0)


class Value(NamedTuple):
    """A stored value with its version."""

    text: str
    version: Version


class Row(NamedTuple):
    """A slot's row of the routing table, from the point of view of one of its holders.

    Attributes:
        leads: whether this node is the slot leader.
        token: of the row.
        leader: the slot leader's name; None while there is none.
        followers: their names.
    """

    leads: bool
    token: Token
    leader: str | None
    followers: tuple[str, ...]


class Range(NamedTuple):
    """A range of epochs; the first one is 0 at the beginning, the last one is part of it."""

    first: int
    last: int


class Holding(NamedTuple):
    """A holder's data of a slot: every PUT that was acknowledged under the tables of ranges of epochs.

    Attributes:
        values: at least these PUTs.
        covered: the ranges, in any order; none if nothing is covered.
        table_epoch: of the newest table that the holder has read. Until it has read the requester's table, a later
            answer may contain more.
    """

    values: Mapping[str, Value]
    covered: tuple[Range, ...]
    table_epoch: int


class Ticket(NamedTuple):
    """The purpose of a fetch. The result is discarded if there was another gain or leadership meanwhile.

    Attributes:
        slot_id: which slot.
        gained_epoch: of the table that gave it to this node.
        leader_epoch: the slot leader epoch of its row.
        table_epoch: of the table that was adopted last.
    """

    slot_id: int
    gained_epoch: int
    leader_epoch: int
    table_epoch: int


class Refused(Exception):  # noqa: N818 - an answer of the protocol, not an error
    """A request that the slot's rules refuse.

    Args:
        status: ``moved`` (this node does not hold or lead the slot), ``migrating`` (its data is not complete yet),
            ``fenced`` (a newer leader is known), ``behind`` (the other side knows a newer table: try again).
        epoch: the table's epoch that this node knows.
    """

    def __init__(self, status: str, epoch: int) -> None:
        super().__init__(f"{status} (epoch {epoch})")
        self.status = status
        self.epoch = epoch


@dataclass(slots=True)
class Replica:
    """One slot's data on this node.

    Attributes:
        row: the present row; the last one if the slot is lost.
        gained_epoch: the epoch of the table in which this node gained it.
        covered_from: it has every PUT that a leader acknowledged under a table of this epoch or a later one.
        lost_at_s: when it was lost (monotonic); None while it is held.
        lost_epoch: the epoch of the table in which this node lost it.
        earlier: ranges of epochs before ``covered_from``, with a gap after each, for which it has every PUT, too.
    """

    row: Row
    gained_epoch: int
    covered_from: int
    lost_at_s: float | None = None
    lost_epoch: int = 0
    earlier: tuple[Range, ...] = ()
    values: dict[str, Value] = field(default_factory=dict)
    highest: Version = _NO_VERSION

    @property
    def complete(self) -> bool:
        """Whether it has every acknowledged value since the beginning."""
        return self.covered_from == 0

    def covered(self, through: int) -> tuple[Range, ...]:
        """The ranges for which it has every PUT, if the present one ends with the epoch ``through``."""
        present = (Range(self.covered_from, through),) if self.covered_from <= through else ()
        return (*present, *self.earlier)

    def cover(self, ranges: Iterable[Range]) -> None:
        """Add ranges whose values were merged."""
        latest_first = sorted({*self.earlier, *ranges}, key=lambda each: each.last, reverse=True)
        for each in latest_first:
            if each.last >= self.covered_from - 1:
                self.covered_from = min(self.covered_from, each.first)
        self.earlier = tuple(each for each in latest_first if each.first < self.covered_from)

    def gain_again(self, row: Row, epoch: int) -> None:
        """Hold it once more. Its data stays: versions decide between it and the fetched data."""
        # Lost and gained by the same table: epochs were skipped, in which others may have held it.
        if self.lost_epoch < epoch:
            self.earlier = self.covered(self.lost_epoch - 1)
        self.row, self.gained_epoch, self.covered_from, self.lost_at_s = row, epoch, epoch, None

    def merge(self, values: Mapping[str, Value]) -> None:
        """Merge values, with the newer version of each key."""
        for key, value in values.items():
            known = self.values.get(key)
            if known is None or value.version > known.version:
                self.values[key] = value
            self.highest = max(self.highest, value.version)


class SlotStore:
    """All slots of a node; thread-safe.

    Attributes:
        epoch: of the table that was adopted last.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._replicas: dict[int, Replica] = {}
        self._seen_leader_epochs: dict[int, int] = {}
        self._lock = threading.Lock()

    def adopt(self, epoch: int, rows: Mapping[int, Row], now_s: float) -> None:
        """Adopt a new table and ignore an older one; ``rows`` are those of the slots that this node holds in it."""
        with self._lock:
            if epoch < self.epoch:
                return
            self.epoch = epoch
            for slot_id, row in rows.items():
                replica = self._replicas.get(slot_id)
                if replica is None:
                    self._replicas[slot_id] = Replica(row, epoch, epoch)
                elif replica.lost_at_s is None:
                    replica.row = row
                else:
                    replica.gain_again(row, epoch)
            for slot_id, replica in list(self._replicas.items()):
                if slot_id in rows:
                    continue
                if replica.lost_at_s is None:
                    replica.lost_at_s, replica.lost_epoch = now_s, epoch
                elif now_s - replica.lost_at_s > GRACE_S:
                    del self._replicas[slot_id]

    def put(self, slot_id: int, key: str, text: str) -> tuple[Value, Row]:
        """Store a value as the slot leader. It may be acknowledged once every follower of the row has a copy.

        Raises:
            Refused: ``moved`` or ``migrating``.
        """
        with self._lock:
            replica = self._serving(slot_id)
            leader_epoch, highest = replica.row.token.leader_epoch, replica.highest
            counter = highest.counter + 1 if highest.leader_epoch == leader_epoch else 1
            value = Value(text, Version(leader_epoch, counter))
            replica.merge({key: value})
            return value, replica.row

    def get(self, slot_id: int, key: str) -> str | None:
        """A key's value; None if there is none. Only the slot leader answers.

        Raises:
            Refused: ``moved`` or ``migrating``.
        """
        with self._lock:
            value = self._serving(slot_id).values.get(key)
            return value.text if value else None

    def copy(self, slot_id: int, token: Token, table_epoch: int, key: str, value: Value) -> None:
        """Store the slot leader's copy of a PUT, also while the slot is still being fetched.

        Args:
            slot_id: which slot.
            token: of the leader's row.
            table_epoch: of the leader's table.
            key: which key.
            value: with its version.

        Raises:
            Refused: ``fenced``: a newer leader is known here; ``behind`` or ``moved``: the slot is not held here.
        """
        with self._lock:
            replica = self._replicas.get(slot_id)
            if replica is None or replica.lost_at_s is not None:
                raise Refused("behind" if table_epoch > self.epoch else "moved", self.epoch)
            self._see(slot_id, token)
            if token.leader_epoch < max(self._seen_leader_epochs[slot_id], replica.row.token.leader_epoch):
                raise Refused("fenced", self.epoch)
            replica.merge({key: value})

    def fetch_as_leader(self, slot_id: int, token: Token) -> Holding:
        """The data for the slot's new leader, after the slot was closed for every older leadership."""
        with self._lock:
            self._see(slot_id, token)
            replica = self._replicas.get(slot_id)
            return Holding({}, (), self.epoch) if replica is None else self._holding(replica)

    def fetch_as_follower(self, slot_id: int, token: Token, table_epoch: int, requester: str) -> Holding:
        """The data for a follower, which gets a copy of each PUT from here on.

        Args:
            slot_id: which slot.
            token: of the requester's row.
            table_epoch: of the requester's table.
            requester: the node that asks.

        Raises:
            Refused: ``behind``: this node's table does not show yet that it leads and the requester follows, so the
                requester could miss a PUT; ``moved``: the slot has another leader; ``migrating``: not complete here.
        """
        with self._lock:
            self._see(slot_id, token)
            replica = self._replicas.get(slot_id)
            if table_epoch > self.epoch:
                raise Refused("behind", self.epoch)
            if replica is None or not self._leads(slot_id, replica):
                raise Refused("moved", self.epoch)
            if requester not in replica.row.followers:
                raise Refused("moved", self.epoch)
            if not replica.complete:
                raise Refused("migrating", self.epoch)
            return self._holding(replica)

    def ticket(self, slot_id: int) -> tuple[Ticket, Row] | None:
        """The ticket for a fetch of this slot; None if there is nothing to fetch."""
        with self._lock:
            replica = self._replicas.get(slot_id)
            if replica is None or replica.lost_at_s is not None or replica.complete:
                return None
            row = replica.row
            return Ticket(slot_id, replica.gained_epoch, row.token.leader_epoch, self.epoch), row

    def fetched(self, ticket: Ticket, answer: Holding) -> bool:
        """Merge the result of a fetch.

        Returns:
            Whether the slot is complete now. Also False if the ticket is no longer valid: fetch again.
        """
        with self._lock:
            replica = self._of(ticket)
            if replica is None:
                return False
            replica.merge(answer.values)
            replica.cover(answer.covered)
            return replica.complete

    def start_with_what_there_is(self, ticket: Ticket) -> bool:
        """Declare the slot complete, because no living node has more. False if the ticket is no longer valid."""
        with self._lock:
            replica = self._of(ticket)
            if replica is None:
                return False
            replica.covered_from = 0
            return True

    def incomplete(self) -> list[int]:
        """The held slots that are not complete yet, ascending."""
        with self._lock:
            return sorted(
                slot_id for slot_id, each in self._replicas.items() if each.lost_at_s is None and not each.complete
            )

    def stored_bytes(self) -> dict[int, int]:
        """The length of all values of each slot that this node leads."""
        with self._lock:
            return {
                slot_id: sum(len(key) + len(value.text) for key, value in replica.values.items())
                for slot_id, replica in self._replicas.items()
                if replica.lost_at_s is None and replica.row.leads
            }

    def _see(self, slot_id: int, token: Token) -> None:
        """Store the newest leadership that a request has shown, also of a slot that this node does not hold."""
        self._seen_leader_epochs[slot_id] = max(self._seen_leader_epochs.get(slot_id, 0), token.leader_epoch)

    def _leads(self, slot_id: int, replica: Replica) -> bool:
        """Whether this node leads the slot and no request has shown a newer leadership."""
        fenced = self._seen_leader_epochs.get(slot_id, 0) > replica.row.token.leader_epoch
        return replica.lost_at_s is None and replica.row.leads and not fenced

    def _of(self, ticket: Ticket) -> Replica | None:
        replica = self._replicas.get(ticket.slot_id)
        if replica is None or replica.lost_at_s is not None:
            return None
        present = replica.gained_epoch, replica.row.token.leader_epoch
        return replica if present == (ticket.gained_epoch, ticket.leader_epoch) else None

    def _holding(self, replica: Replica) -> Holding:
        through = self.epoch if replica.lost_at_s is None else replica.lost_epoch - 1
        return Holding(dict(replica.values), replica.covered(through), self.epoch)

    def _serving(self, slot_id: int) -> Replica:
        replica = self._replicas.get(slot_id)
        if replica is None or not self._leads(slot_id, replica):
            raise Refused("moved", self.epoch)
        if not replica.complete:
            raise Refused("migrating", self.epoch)
        return replica
