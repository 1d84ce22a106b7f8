"""The outside world behind the ports: Kafka, Redis, the system's clock and threads.

Every adapter passes the same contract suite as its counterpart in :mod:`controlplane.testing` (``tests/contracts``).
Only ``kafka_*`` import confluent_kafka, only ``redis_lease`` imports redis.
"""
