"""A small sharded key-value service, as a user of the control plane could write one.

store      what a node holds of each slot, and the rules that fence it
protocol   one JSON object a line over TCP
moving     how a gained slot's data is fetched from those that held it
load       what the node measures of its own work
node       the service: ``python -m examples.kv.node``
client     the library of those who use the service, and ``python -m examples.kv.client``
traffic    skewed traffic with counts of what became of it
"""
