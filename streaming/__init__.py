"""The pipeline: Spark Structured Streaming from the topics into Delta tables, and SQL over them.

Transforms are functions from DataFrame to DataFrame; the rules about load are the core's own functions. Every stream
reads only committed records and goes on from its checkpoint, and every write is idempotent, so a restart
neither loses nor doubles a row.
"""
