"""Queries of a cluster: read from its log by readers that are given, and answered as plain data.

Commands, a page and an API share it: nothing here opens a connection, prints, or writes to the log.
"""
