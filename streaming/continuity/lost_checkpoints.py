"""Before the streams start: whether each checkpoint belongs to the tables that its stream writes."""

from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig
from streaming.continuity.checkpoints import read_checkpoint
from streaming.contracts.records import TABLE_OF_TOPIC, tables_of
from streaming.tables.driver_tables import DriverTable
from streaming.tables.warehouse import HOW_TO_MEND


def refuse_lost_checkpoints(config: PipelineConfig) -> None:
    """Refuse to read records into a table that has them already, or to pass over records that it has not.

    Raises:
        PrerequisiteError: a table has rows, and its stream has no checkpoint, a damaged one, one that is older than the
            table, or one with which the table was not written.
        RetryableError: the checkpoints' storage does not answer.
    """
    for topic, its_table in TABLE_OF_TOPIC.items():
        folder = config.checkpoint_dir(its_table.name)
        checkpoint = read_checkpoint(folder, config.cluster.topic(topic))
        for contract in tables_of(topic):
            table = DriverTable(config.warehouse_dir, contract, "" if checkpoint is None else checkpoint.query_id)
            if checkpoint is None or checkpoint.batch is None:
                fault = None if table.is_empty else "is gone"
            elif table.was_written_by_another:
                fault = "is not the one with which it was written"
            else:
                fault = "is older than it" if (table.written_version or 0) > checkpoint.batch else None
            if fault is not None:
                held = f"the table {contract.name} in {config.warehouse_dir} holds rows and its checkpoint {folder}"
                message = f"{held} {fault}: going on would add records a second time, or leave some out"
                raise PrerequisiteError(f"{message}; {HOW_TO_MEND}")
