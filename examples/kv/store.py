"""What one node holds of each slot, and which requests the slot's present row lets it answer. No network, no clock.

An acknowledged PUT is never lost while one replica that counts as complete lives:

- Only the slot leader accepts a PUT, and it is copied to every follower of the row before it is acknowledged.
- A new slot leader fetches before it serves. Its FETCH carries the new slot leader epoch, and whoever sees that stops
  accepting PUTs and older COPYs for the slot first, also before it holds the slot: an older leader acknowledges nothing
  that the new one lacks.
- A holder says from which table's epoch to which other it has every PUT that was acknowledged. Only what joins on to
  that can complete it: somebody who held the slot some time ago may lack what others acknowledged since.
- A follower fetches from its leader, and only once the leader's table shows it as a follower: what comes after the
  fetch is then copied to it.
- Versions, (slot leader epoch, counter), decide between values of one key, so COPYs and fetched values may come in any
  order.

A fencing token is (term, slot leader epoch). Epochs are ordered by the log across terms, so the slot leader epoch alone
decides which of two tokens is newer; the term is carried for people.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

GRACE_S: Final = 60.0
"""How long the data of a lost slot stays readable for those who gained it."""


class Token(NamedTuple):
    """A fencing token: under which leadership of the slot somebody acts."""

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
    """A slot's row of the routing table as one of its holders sees it.

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


class Holding(NamedTuple):
    """What somebody has of a slot: every PUT that was acknowledged under the tables of a range of epochs.

    Attributes:
        values: perhaps more than that.
        covered_from: the first epoch; 0 is the beginning.
        through: the last epoch; before ``covered_from`` if nothing is covered.
        table_epoch: of the newest table that the holder has read; what it answers later may be more until it has read
            the requester's.
    """

    values: Mapping[str, Value]
    covered_from: int
    through: int
    table_epoch: int


class Ticket(NamedTuple):
    """What a fetch is for; one that was overtaken by another gain or leadership is thrown away.

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
    """A request that the slot's rules do not let through.

    Args:
        status: ``moved`` (not ours, or not any more), ``migrating`` (ours, not complete yet), ``fenced`` (a newer
            leader is known), ``behind`` (the other side knows a newer table: try again).
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
        gained_epoch: the epoch of the table that gave it to this node.
        covered_from: it has every PUT that a leader acknowledged under a table of this epoch or a later one.
        lost_at_s: when it was lost (monotonic); None while it is held.
        lost_epoch: of the table that took it away.
    """

    row: Row
    gained_epoch: int
    covered_from: int
    lost_at_s: float | None = None
    lost_epoch: int = 0
    values: dict[str, Value] = field(default_factory=dict)
    highest: Version = _NO_VERSION

    @property
    def complete(self) -> bool:
        """Whether it has every acknowledged value since the beginning."""
        return self.covered_from == 0

    def merge(self, values: Mapping[str, Value]) -> None:
        """Take values in, the newer version of each key."""
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
        """Follow a new table, an older one is passed by; ``rows`` are those of the slots that this node holds in it."""
        with self._lock:
            if epoch < self.epoch:
                return
            self.epoch = epoch
            for slot_id, row in rows.items():
                replica = self._replicas.get(slot_id)
                if replica is not None and replica.lost_at_s is None:
                    replica.row = row
                    continue
                # What is left of an earlier time here stays: versions decide against what will be fetched.
                kept = replica or Replica(row, epoch, epoch)
                kept.row, kept.gained_epoch, kept.covered_from, kept.lost_at_s = row, epoch, epoch, None
                self._replicas[slot_id] = kept
            for slot_id, replica in list(self._replicas.items()):
                if slot_id in rows:
                    continue
                if replica.lost_at_s is None:
                    replica.lost_at_s, replica.lost_epoch = now_s, epoch
                elif now_s - replica.lost_at_s > GRACE_S:
                    del self._replicas[slot_id]

    def put(self, slot_id: int, key: str, text: str) -> tuple[Value, Row]:
        """Store a value as the slot leader; it may be acknowledged once every follower of the row has a copy.

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
        """A key's value, None if there is none; only the slot leader answers.

        Raises:
            Refused: ``moved`` or ``migrating``.
        """
        with self._lock:
            value = self._serving(slot_id).values.get(key)
            return value.text if value else None

    def copy(self, slot_id: int, token: Token, table_epoch: int, key: str, value: Value) -> None:
        """Take the slot leader's copy of a PUT; also while the slot is still being fetched.

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
        """Give the slot's new leader what this node has, after closing the slot for every older leadership."""
        with self._lock:
            self._see(slot_id, token)
            replica = self._replicas.get(slot_id)
            return Holding({}, 1, 0, self.epoch) if replica is None else self._holding(replica)

    def fetch_as_follower(self, slot_id: int, token: Token, table_epoch: int, requester: str) -> Holding:
        """Give a follower everything; from here on it gets a copy of each PUT.

        Args:
            slot_id: which slot.
            token: of the requester's row.
            table_epoch: of the requester's table.
            requester: the node that asks.

        Raises:
            Refused: ``behind``: the table here does not show yet that this node leads and the requester follows, so a
                PUT might still pass the requester by; ``moved``: nor will it; ``migrating``: not complete here either.
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
        """What a fetch of this slot is for; None if there is nothing to fetch (any more)."""
        with self._lock:
            replica = self._replicas.get(slot_id)
            if replica is None or replica.lost_at_s is not None or replica.complete:
                return None
            row = replica.row
            return Ticket(slot_id, replica.gained_epoch, row.token.leader_epoch, self.epoch), row

    def fetched(self, ticket: Ticket, answer: Holding) -> bool:
        """Merge what a fetch brought.

        Returns:
            Whether the slot is complete now. False also if the ticket was overtaken: fetch again.
        """
        with self._lock:
            replica = self._of(ticket)
            if replica is None:
                return False
            replica.merge(answer.values)
            if answer.through >= replica.covered_from - 1:
                replica.covered_from = min(replica.covered_from, answer.covered_from)
            return replica.complete

    def start_with_what_there_is(self, ticket: Ticket) -> bool:
        """Nobody lives who has more; False if the ticket was overtaken."""
        with self._lock:
            replica = self._of(ticket)
            if replica is None:
                return False
            replica.covered_from = 0
            return True

    def incomplete(self) -> list[int]:
        """The slots that are held and not complete yet, ascending."""
        with self._lock:
            return sorted(
                slot_id for slot_id, each in self._replicas.items() if each.lost_at_s is None and not each.complete
            )

    def stored_bytes(self) -> dict[int, int]:
        """How much text the values of each slot that is led here have."""
        with self._lock:
            return {
                slot_id: sum(len(key) + len(value.text) for key, value in replica.values.items())
                for slot_id, replica in self._replicas.items()
                if replica.lost_at_s is None and replica.row.leads
            }

    def _see(self, slot_id: int, token: Token) -> None:
        """Remember the newest leadership that anybody has shown, also of a slot that is not held (yet)."""
        self._seen_leader_epochs[slot_id] = max(self._seen_leader_epochs.get(slot_id, 0), token.leader_epoch)

    def _leads(self, slot_id: int, replica: Replica) -> bool:
        """Whether this node leads the slot and nobody has shown a newer leadership."""
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
        return Holding(dict(replica.values), replica.covered_from, through, self.epoch)

    def _serving(self, slot_id: int) -> Replica:
        replica = self._replicas.get(slot_id)
        if replica is None or not self._leads(slot_id, replica):
            raise Refused("moved", self.epoch)
        if not replica.complete:
            raise Refused("migrating", self.epoch)
        return replica
