"""The metrics of every Kafka client in this process, in Prometheus' default registry.

They are the only state that clients share. Counts are per role: two clients of the same role, of one cluster or of
several, add to the same sample.
"""

from prometheus_client import Counter

CLIENT_ERRORS = Counter(
    "controlplane_kafka_client_errors",
    "Errors that librdkafka reported (connections, brokers, authentication), by client and error name",
    ["client", "error"],
)

CLIENTS_REPLACED = Counter(
    "controlplane_kafka_clients_replaced",
    "Kafka clients replaced by a new one because they received nothing while Kafka answered the new one, by client",
    ["client"],
)
