"""The log's bytes: Avro schemas, framing, and the conversion between bytes and the core's values.

No I/O but reading the package's own schema files, no Kafka: every function takes bytes or gives bytes.
"""
