"""Going on where a stream ended: its checkpoint, what Kafka no longer has, and whether the tables are whole."""
