"""Asking the leader for an operation: the options, the answer, and what it would do."""
