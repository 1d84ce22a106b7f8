"""Handoffs one at a time, with a fault or a command exactly when the log shows a step: the matrix of who fails."""
