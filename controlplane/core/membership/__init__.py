"""Membership: nodes, the records that they send, log time, and the standing orders of operators."""
