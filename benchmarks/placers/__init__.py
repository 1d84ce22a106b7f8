"""Ways to place slots on nodes, side by side: ours, SOFARegistry's, and what else is in use.

contract    what a placer is asked and answers
least       ours: exact balance with the least movement, and how little would do from any table
sofa        SOFARegistry's assigner and balancer, tick after tick
ring        consistent hashing with 500 virtual nodes
rendezvous  highest random weight
jump        jump consistent hash
ranges      Kafka's range assignor
round_robin Kafka's round-robin assignor
sticky      Kafka's sticky assignors
dicer       the placement rule of Databricks' Dicer under uniform load

Each is written from its published description, as plainly as it goes; times are those of this Python. Where the source
knows one owner only, its docstring says how it was given more.
"""
