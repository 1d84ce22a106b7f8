"""Any rows of the table ``membership``, for tests that need rows and do not mind which."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from streaming.contracts.records import MEMBERSHIP_TABLE


def membership_rows(spark: SparkSession, count: int) -> DataFrame:
    """Rows of the table ``membership``, of today."""
    return spark.range(count).select(
        *(
            F.col("id").cast(field.dataType).alias(field.name)
            if field.name in ("offset", "partition")
            else F.current_date().alias("day")
            if field.name == "day"
            else F.lit("text" if field.dataType.typeName() == "string" else None).cast(field.dataType).alias(field.name)
            if field.nullable or field.dataType.typeName() == "string"
            else F.lit(1).cast(field.dataType).alias(field.name)
            for field in MEMBERSHIP_TABLE.fields
        )
    )
