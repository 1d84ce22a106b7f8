"""The table of owners: the fold of all records, and what compaction leaves of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.core.bundles.ownership_channel.conflict import Verdict, judge
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_state import OwnershipState


class Written(NamedTuple):
    """A record as it stands in the log: the bundle, and its record or None for a deletion."""

    bundle_id: str
    record: OwnershipRecord | None


class Judged(NamedTuple):
    """A written record and what became of it."""

    written: Written
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class OwnershipTable:
    """The table of one reader (Pulsar's ServiceUnitStateTableView).

    Attributes:
        storage: where the records are kept.
        records: the record of each bundle that has one.
    """

    storage: Storage = Storage.SYSTEM_TOPIC
    records: Mapping[str, OwnershipRecord] = field(default_factory=dict)

    def read(self, written: Iterable[Written]) -> tuple["OwnershipTable", tuple[Judged, ...]]:
        """The table after these records in the order of the log, and the verdict on each."""
        records = dict(self.records)
        judged = tuple(_judged(records, written, self.storage))
        return OwnershipTable(self.storage, records), judged

    def owners(self) -> dict[str, str]:
        """Bundle -> node, for the bundles in state *Owned*: what anti-affinity counts."""
        return {
            bundle_id: record.destination
            for bundle_id, record in self.records.items()
            if record.state is OwnershipState.OWNED and record.destination is not None
        }


def compacted(written: Iterable[Written]) -> tuple[Written, ...]:
    """What compaction of the topic leaves: of each bundle the last record that was taken, in their order.

    A reader that starts with it ends with the table of a reader of all records. So does one that has read a part
    before, unless the versions of a bundle fell among the records that it misses: they begin anew after a deletion, and
    the least one follows the greatest. The record that the reader has is then of a higher version, and stays.
    """
    records: dict[str, OwnershipRecord] = {}
    for each in _judged(records, written, Storage.SYSTEM_TOPIC):
        if not each.verdict.keeps and each.written.record is not None:
            # Behind the others, as it is in the topic.
            records[each.written.bundle_id] = records.pop(each.written.bundle_id)
    return tuple(Written(*each) for each in records.items())


def _judged(records: dict[str, OwnershipRecord], written: Iterable[Written], storage: Storage) -> Iterator[Judged]:
    """Fold records into ``records`` one by one."""
    for each in written:
        if each.record is not None and each.record.state is OwnershipState.INIT:
            yield Judged(each, Verdict.INIT)
            continue
        verdict = judge(records.get(each.bundle_id), each.record, storage)
        if each.record is None:
            records.pop(each.bundle_id, None)
        elif not verdict.keeps:
            records[each.bundle_id] = each.record
        yield Judged(each, verdict)
