"""The outside world behind the ports: Kafka, Redis, the system's clock, and shipped in-memory fakes of all three.

Every adapter and its fake pass the same contract suite (``tests/contracts``). Only ``kafka_*`` import confluent_kafka,
only ``redis_lease`` imports redis.
"""
