"""Loads of nodes and bundles: what is reported, how it is averaged, and when a node reports.

The rules are those of Pulsar's load managers as pure functions, with results equal to the bit. Where Pulsar iterates
over a hash map, the order of the argument counts, so that the caller decides how ties are broken.
"""
