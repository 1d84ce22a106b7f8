"""Bugs put into modules on purpose, each found by a recorded answer or a test: ``python -m tests.mutants``."""
