"""Ownership of bundles as Pulsar's extensible load manager keeps it: a table that every node writes and reads.

The table has one record for each bundle. Nodes publish the next record of a bundle, and every reader takes or refuses
it by the same rule, so that all of them end with the same table.

``states`` and ``record`` have the words, ``conflict`` the rule, ``table`` the fold of records. ``requests`` begins a
change, ``flows`` says what a node does when it reads a record, ``division`` how it splits a bundle, ``lookup`` who owns
one, ``shutdown`` how it leaves. The leader's parts are ``lost_nodes`` (a node disappears), ``cleanup`` (its bundles get
other owners) and ``monitor`` (what is stuck).
"""
