"""The log's bytes: Avro schemas, framing, and the conversion between bytes and the core's values.

The only I/O is reading the package's own schema files; no module here knows Kafka. Functions take or return bytes.
"""
