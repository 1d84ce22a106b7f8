"""Files of ``bundle_load`` as an executor writes them."""

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.storage import StoragePath
from streaming.tables.table_files import TableFileWriter, WrittenFile
from tests.helpers.load_logs import report
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.plain_load import PlainLoad, bundle_row

SCHEMA = to_arrow_schema(BUNDLE_LOAD_TABLE.schema)


def bundle_rows(*names: str, bucket: int = 3) -> pa.Table:
    """Rows of ``bundle_load`` in one bucket."""
    plain = PlainLoad()
    plain.fold([report("n1", 7, [bundle_load(f"kv/{name}") for name in names])], ResourceWeights())
    rows = [dict(zip(SCHEMA.names, bundle_row(each), strict=True)) for each in plain.bundles.values()]
    return pa.Table.from_pylist([{**row, "bucket": bucket} for row in rows], schema=SCHEMA)


def written(folder: StoragePath, *parts: pa.Table, bucket: int = 3) -> WrittenFile:
    """A file with these rows."""
    writer = TableFileWriter(folder, "bucket", str(bucket), SCHEMA)
    for part in parts:
        writer.write(part)
    return writer.close()
