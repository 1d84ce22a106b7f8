"""The log on Kafka: the three clients that implement the ports, each in a module of its own."""

from controlplane.adapters.kafka_events import KafkaEventWriter
from controlplane.adapters.kafka_reader import KafkaLogReader
from controlplane.adapters.kafka_transactions import KafkaTransactionalWriter

__all__ = ["KafkaEventWriter", "KafkaLogReader", "KafkaTransactionalWriter"]
