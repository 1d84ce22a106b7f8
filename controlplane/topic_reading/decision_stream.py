"""The records of ``decisions`` as decisions: what is none of this log is passed by, and said.

A decision of this log that breaks the chain is no foreign record: applying it is refused.
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
"""Reasons that say what a record is: it is no damaged decision of this log."""


class DecisionStream:
    """Takes records in log order, from a decision's first record on. Not thread-safe.

    Attributes:
        foreign: the records that were passed by.
        met_another_log: whether one of them was a decision of another log.
        undecoded_next: what stands under the key of the decision that comes next and cannot be decoded, with its place;
            empty if nothing does. Once that decision came, the record was foreign.
    """

    def __init__(self, log_id: str = "", next_seq: Seq | None = None, foreign: ForeignRecords | None = None) -> None:
        """Begin.

        Args:
            log_id: the log that is read; empty lets the first decision name it.
            next_seq: the decision that comes next; None if that is not known.
            foreign: goes on from an earlier reading of the same topic.
        """
        self.foreign = foreign or ForeignRecords(DECISIONS)
        self.met_another_log = False
        self.undecoded_next = ""
        self._assembler = DecisionAssembler(log_id=log_id, next_seq=next_seq)

    @property
    def within_decision(self) -> bool:
        """Whether a decision was begun whose last part has not come."""
        return self._assembler.within_decision

    @property
    def log_id(self) -> str:
        """The log that is read; empty before its first decision."""
        return self._assembler.log_id

    def take(self, record: RawRecord) -> Decision | None:
        """The decision that this record completes; None while parts are missing, and for a foreign record.

        Raises:
            UnsupportedFeatureLevelError: a newer version wrote it; the message names the place.
            LogContinuityError: it is a part of a decision that cannot follow here; the message names the place.
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
        """Whether the record is a decision's or a part of one, of this log; it is not taken."""
        try:
            DecisionAssembler(log_id=self.log_id).read(record.value)
        except InvalidInputError:
            return False
        return True
