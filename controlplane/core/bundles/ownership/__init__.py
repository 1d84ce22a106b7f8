"""Ownership of bundles as Pulsar's extensible load manager keeps it: a table that every node writes and reads.

The table has one record for each bundle. Nodes publish the next record of a bundle, and every reader takes or refuses
it by the same rule (``conflict``), so that all of them end with the same table. ``states`` and ``record`` are the words,
``table`` folds records. ``requests`` has the records that begin a change, ``flows`` what a node does when it reads one,
``division`` how a bundle is split, ``lookup`` who owns a bundle. The leader's parts are ``lost_nodes`` (a node
disappears), ``cleanup`` (its bundles get other owners) and ``monitor`` (what is stuck). ``shutdown`` is how a node
leaves.
"""
