"""Queries about a cluster, answered as plain data from given readers of its log.

Commands, pages and APIs can share these functions, because nothing here opens a connection, prints, or writes to the
log.
"""
