"""What a cluster asks of its Kafka: the files of topics and of rights, promises, and what platforms fix.

Pure functions from text, and from what Kafka shows of itself, to values and sentences; no module here asks Kafka.
"""
