"""Snapshots of the state: how a state is divided into parts, which snapshots are whole, and when the next one is due.

A snapshot only shortens the fold of the log. A reader that starts from a snapshot reads the snapshot's last decision
back from the log, so a state that does not belong to the log is never used.
"""
