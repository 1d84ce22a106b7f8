"""Every application transaction of a table, read from its log at once.

delta-rs is asked for one of them by its name, and reads the log anew each time. A table that keeps a number for each
node would be asked thousands of times at a start.
"""

import json
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from streaming.storage import StoragePath

_POINTER: Final = "_last_checkpoint"
"""The file that names the newest checkpoint of a Delta log: a summary of all commits up to a version."""


def app_transactions(table: StoragePath, version: int) -> dict[str, int] | None:
    """The numbers by their names, as they were last written up to a version.

    Args:
        table: the table's folder.
        version: not older than the newest checkpoint.

    Returns:
        None if the newest checkpoint is of another kind than delta-rs writes: in parts, or of Delta's second format.
    """
    log = table / "_delta_log"
    numbers: dict[str, int] = {}
    begin = 0
    if (log / _POINTER).exists():
        summed_up = json.loads((log / _POINTER).read_text(encoding="utf-8"))["version"]
        checkpoint = log / f"{summed_up:020}.checkpoint.parquet"
        if not checkpoint.exists():
            return None
        content = pa.BufferReader(checkpoint.read_bytes())
        written = pq.read_table(content, columns=["txn"])["txn"].drop_null().to_pylist()
        numbers.update((each["appId"], each["version"]) for each in written)
        begin = summed_up + 1
    for number in range(begin, version + 1):
        actions = map(json.loads, (log / f"{number:020}.json").read_text(encoding="utf-8").splitlines())
        written = [action["txn"] for action in actions if "txn" in action]
        numbers.update((each["appId"], each["version"]) for each in written)
    return numbers
