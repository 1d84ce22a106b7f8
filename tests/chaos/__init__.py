"""Real processes, real Kafka and Valkey, faults without end: what clients saw is judged by checkers of its own.

``python -m tests.chaos --minutes 30 --seed 1``
"""
