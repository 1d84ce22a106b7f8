"""Placers of slots on nodes, for comparison: the default policy's, SOFARegistry's, and others in use.

contract    the interface of a placer
least       the default: exact balance with the least movement, and the least movement from any table
sofa        SOFARegistry's assigner and balancer, tick after tick
hashing     the policies ring (500 virtual nodes) and rendezvous (highest random weight)
jump        jump consistent hash
ranges      Kafka's range assignor
round_robin Kafka's round-robin assignor
sticky      Kafka's sticky assignors
dicer       the placement rule of Databricks' Dicer under uniform load

Each is written from its published description, in the simplest way; times are those of this Python code. If the source
describes one owner only, the docstring says how further replicas are placed.
"""
