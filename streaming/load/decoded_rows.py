"""What tasks make of a batch of load reports: rows of four kinds in one frame, and each kind by itself.

Spark computes a frame once, and keeps it, so what is known of reports and what is made of them are in one.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from controlplane.core.bundles.load.report_figures import ReportFigures
from controlplane.core.bundles.load.view import Resources
from streaming.contracts.columns import spark_type
from streaming.load.sample_blocks import Block
from streaming.records.decode import REFUSAL_TYPE
from streaming.tables.table_files import WRITTEN_TYPE, WrittenFile, written_files

DECODED_TYPE: Final = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("append_time_ms", LongType()),
        StructField("refusal", REFUSAL_TYPE),
        StructField("value", BinaryType()),
        StructField("node_id", StringType()),
        StructField("incarnation", LongType()),
        StructField("version", StringType()),
        StructField("resources", spark_type(Resources)),
        StructField("figures", spark_type(ReportFigures)),
        StructField("bucket", IntegerType()),
        StructField("samples", BinaryType()),
        StructField("file", WRITTEN_TYPE),
    ]
)
"""A row is one of four: a refused record (``refusal``, ``value``), a usable one (``figures``, ``resources``,
``version``), a block of the bundles of usable ones (``bucket``, ``samples``), or a file of ``load_reports``
(``file``)."""


def record_rows(decoded: DataFrame) -> DataFrame:
    """A row for each record, refused or usable."""
    return decoded.where("bucket IS NULL AND file IS NULL")


def refused_rows(decoded: DataFrame) -> DataFrame:
    """The refused records."""
    return decoded.where("refusal IS NOT NULL")


def usable_rows(decoded: DataFrame) -> DataFrame:
    """The usable records."""
    return decoded.where("figures IS NOT NULL")


def block_rows(decoded: DataFrame) -> DataFrame:
    """The blocks of samples, in columns ``bucket`` and ``samples``."""
    return decoded.where("bucket IS NOT NULL").select(*Block._fields)


def report_files(decoded: DataFrame) -> list[WrittenFile]:
    """The files of ``load_reports`` that the tasks have written."""
    return written_files(decoded.where("file IS NOT NULL").select("file.*"))
