"""Bugs put into the rules of Pulsar and of HiveMQ's ring on purpose: ``python -m tests.conformance.mutants``."""
