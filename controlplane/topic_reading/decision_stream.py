"""Turns the records of ``decisions`` into decisions; records that do not belong to this log are counted and skipped.

A decision of this log that breaks the chain is not foreign: applying it raises an error.
"""

from typing import Final

from controlplane.codec.decisions import OTHER_LOG, DecisionAssembler
from controlplane.config import DECISIONS
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Seq
from controlplane.errors import InvalidInputError, StopError
from controlplane.ports import RawRecord
from controlplane.topic_reading.foreign_records import ForeignRecords

_FOREIGN_AS_DECODED: Final = frozenset({OTHER_LOG, "missing_value", "wrong_record_type"})
"""Reasons that identify a record as something other than a damaged decision of this log."""


class DecisionStream:
    """Assembles decisions from records in log order, beginning at a decision's first record. Not thread-safe.

    Attributes:
        foreign: the records that were passed by.
        met_another_log: whether one of them was a decision of another log.
        undecoded_next: the place of a record that has the key of the next decision and cannot be decoded, and the
            reason; otherwise empty. Empty again once that decision came, because the record was foreign then.
    """

    def __init__(self, log_id: str = "", next_seq: Seq | None = None, foreign: ForeignRecords | None = None) -> None:
        """Begin before the next decision.

        Args:
            log_id: the log that is read; if empty, the first decision determines it.
            next_seq: the seq of the next decision; None if it is not known.
            foreign: the count of an earlier reading of the same topic, to be continued.
        """
        self.foreign = foreign or ForeignRecords(DECISIONS)
        self.met_another_log = False
        self.undecoded_next = ""
        self._assembler = DecisionAssembler(log_id=log_id, next_seq=next_seq)

    @property
    def within_decision(self) -> bool:
        """Whether some parts of a decision were read and others are missing."""
        return self._assembler.within_decision

    @property
    def log_id(self) -> str:
        """The log that is read; empty before its first decision."""
        return self._assembler.log_id

    def take(self, record: RawRecord) -> Decision | None:
        """Take the next record; return the decision that it completes.

        Returns:
            None while parts are missing, and for a foreign record.

        Raises:
            UnsupportedFeatureLevelError: a newer version wrote the record; the message names the place.
            LogContinuityError: the record is a part of a decision that cannot follow here; the message names the place.
        """
        place = f"{DECISIONS}[{record.partition}]@{record.offset}"
        try:
            decision = self._assembler.add(record.value, record.key)
        except InvalidInputError as error:
            self.met_another_log = self.met_another_log or error.reason == OTHER_LOG
            self.foreign.note(record, str(error))
            if error.reason not in _FOREIGN_AS_DECODED and self._assembler.is_next(record.key):
                self.undecoded_next = f"{place}: {error}"
            return None
        except StopError as error:
            raise type(error)(f"{place}: {error}") from error
        if decision is not None:
            self.undecoded_next = ""
        return decision

    def belongs(self, record: RawRecord) -> bool:
        """Whether the record is a decision of this log or a part of one; the record is not taken."""
        try:
            DecisionAssembler(log_id=self.log_id).read(record.value)
        except InvalidInputError:
            return False
        return True
