"""The pipeline: Spark Structured Streaming from the topics into Delta tables, and SQL over them.

Transforms are functions from DataFrame to DataFrame. The rules on load are functions of the core. Every stream reads
only committed records and resumes at its checkpoint. Every write is idempotent, so a restart neither loses nor doubles
a row.
"""
