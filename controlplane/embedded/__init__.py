"""Kafka and Redis for one machine, without Docker and without a package manager of the system.

The broker is the real Kafka in one JVM, the lease store the real Valkey from a wheel. Each is a process of its own that
ends with the process that started it. They serve trials, tests and demonstrations; production uses servers of its own.
"""
