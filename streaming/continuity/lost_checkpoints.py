"""Before the streams start: whether each checkpoint belongs to the tables that its stream writes."""

from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.config import DECISIONS, LOAD_REPORTS
from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig
from streaming.continuity.checkpoints import Checkpoint, read_checkpoint
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import TABLE_OF_TOPIC, tables_of
from streaming.contracts.table import TableContract
from streaming.error_texts import HOW_TO_MEND
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter

_FOLDED: Final[Mapping[str, Sequence[TableContract]]] = {LOAD_REPORTS: (BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE)}
"""The tables that a topic's stream folds its records into, which get the number of each batch."""


def refuse_lost_checkpoints(config: PipelineConfig) -> None:
    """Refuse to read records into a table that has them already, or to pass over records that it has not.

    Raises:
        PrerequisiteError: a table has rows, and its stream has no checkpoint, a damaged one, one that is older than the
            table, or one with which the table was not written; or a table is older than its stream's checkpoint, also
            one of loads.
        RetryableError: the checkpoints' storage does not answer.
    """
    for topic, its_table in TABLE_OF_TOPIC.items():
        folder = config.checkpoint_dir(its_table.name)
        checkpoint = read_checkpoint(folder, config.cluster.topic(topic))
        for contract in tables_of(topic):
            fault = _fault(config, topic, contract, checkpoint)
            if fault is not None:
                raise PrerequisiteError(f"the table {contract.name} in {config.tables_dir} {fault}; {HOW_TO_MEND}")
        if checkpoint is not None:
            _refuse_older_loads(config, topic, checkpoint)


def _refuse_older_loads(config: PipelineConfig, topic: str, checkpoint: Checkpoint) -> None:
    for contract in _FOLDED.get(topic, ()):
        if _lacks_folded(TableWriter(config.tables_dir, contract, checkpoint.query_id), checkpoint):
            raise PrerequisiteError(
                f"the table {contract.name} in {config.tables_dir} is older than the checkpoint {checkpoint.folder}: "
                f"load reports that were counted would be missing in it; {HOW_TO_MEND}"
            )


def _fault(config: PipelineConfig, topic: str, contract: TableContract, checkpoint: Checkpoint | None) -> str | None:
    folder = config.checkpoint_dir(TABLE_OF_TOPIC[topic].name)
    held = f"holds rows and its checkpoint {folder}"
    harm = "going on would add records a second time, or leave some out"
    if checkpoint is None or checkpoint.batch is None:
        return None if StoredTable(config.tables_dir, contract).is_empty else f"{held} is gone: {harm}"
    table = TableWriter(config.tables_dir, contract, checkpoint.query_id)
    if table.was_written_by_another:
        return f"{held} is not the one with which it was written: {harm}"
    if (table.written_version or 0) > checkpoint.batch:
        return f"{held} is older than it: {harm}"
    if table.was_taken_back:
        return f"was taken back to an older version, and not its checkpoint {folder}: going on would leave records out"
    if _is_older(topic, table, checkpoint):
        return f"is older than its checkpoint {folder}: going on would leave records out"
    return None


def _lacks_folded(table: TableWriter, checkpoint: Checkpoint) -> bool:
    """Whether batches that are committed are missing in a table of loads.

    One without a number of this stream is new, or has not had a batch since the checkpoint was made anew: the making
    counts as batch 0.
    """
    committed = _committed(checkpoint)
    if table.written_version is None:
        return table.was_written_by_another and committed > 0
    return table.written_version < committed


def _committed(checkpoint: Checkpoint) -> int:
    """The newest batch that is committed; -1: none is."""
    return -1 if checkpoint.batch is None else checkpoint.batch - (not checkpoint.is_committed)


def _is_older(topic: str, table: TableWriter, checkpoint: Checkpoint) -> bool:
    """Whether a table lacks a batch that is committed: each batch leaves its number in each table, also without rows.

    In folders that an earlier version wrote, batches without decisions have left none in ``decisions``. So that table
    is told by its numbers alone whether it is empty; its stream compares the decisions' own numbers.
    """
    committed = _committed(checkpoint)
    if table.written_version is None:
        # A second table of a topic may have come with an upgrade, and of nothing that was read nothing is missing.
        return table.contract is TABLE_OF_TOPIC[topic] and committed >= 0 and any(checkpoint.begin.values())
    return topic != DECISIONS and table.written_version < committed
