"""Records as the pipeline's streams read them from Kafka."""

from typing import Final

RAW: Final = "partition int, offset long, append_time_ms long, key binary, value binary, is_append_time boolean"
"""The columns of :func:`streaming.sources.read_stream`."""
