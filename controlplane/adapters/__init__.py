"""The adapters of the ports to the outside world: Kafka, Redis, and the system's clock and threads.

Every adapter passes the same contract suite as its counterpart in :mod:`controlplane.testing` (``tests/contracts``).
Only ``kafka_*`` import confluent_kafka, and only ``redis_*`` import redis.
"""
