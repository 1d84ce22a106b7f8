"""The pipeline: Spark Structured Streaming from the topics into Delta tables, and SQL over them.

Executors decode records with the core's codec and write files; the driver commits them. The rules on load are functions
of the core. Every stream reads only committed records and resumes at its checkpoint, or at the position that its table
keeps. Every write is idempotent, so a restart neither loses nor doubles a row.
"""
