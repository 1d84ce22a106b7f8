"""Snapshots of the state: how one is cut into parts, which of those in the topic are whole, and when the next is due.

A snapshot only ever shortens the fold of the log. Whoever begins from one reads its last decision back from the log,
so a state that is not the log's own is never led on.
"""
