"""The Spark that a command starts: this machine's, or spark-submit's."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming.config import SparkConfig


def spark_config(cores: int, memory_mib: int, master: str = "", log_file: Path | None = None) -> "SparkConfig":
    """Spark on this machine's Java, with the jars from the cache (downloaded the first time), or spark-submit's."""
    from controlplane.embedded.jars import spark_jars
    from controlplane.embedded.java import find_java
    from streaming.config import SparkConfig
    from streaming.session import is_submitted

    if is_submitted():
        return SparkConfig(jars=(), cores=cores)
    return SparkConfig(spark_jars(), find_java().home, cores, memory_mib, master=master, log_file=log_file)
