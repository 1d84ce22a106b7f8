"""Kafka and Redis for one machine, without Docker and without a package manager of the system.

The broker is the real Kafka in one JVM, the lease store the real Valkey from a wheel. Both are processes of
their own that end with the process that started them. They serve trials, tests and demonstrations;
production brings its own.
"""
