"""A small key-value service that divides its data into slots, as a user of the control plane could write one.

store      what a node holds of each slot, and the rules that fence it
protocol   one JSON object a line over TCP
moving     how a gained slot's data is fetched from those that held it
load       what the node measures of its own work
node       the service: ``python -m examples.kv.node``
client     the library of those who use the service, and ``python -m examples.kv.client``
security   Kafka's settings for TLS and login, from a file
traffic    skewed traffic with counts of what became of it

On a cluster with a controller, from the checkout's root; start as many nodes as you like, each with a name of its own::

    python -m examples.kv.node --cluster local --bootstrap-servers localhost:9092 --node-id kv-1
    python -m examples.kv.node --cluster local --bootstrap-servers localhost:9092 --node-id kv-2
    python -m examples.kv.client --cluster local --bootstrap-servers localhost:9092 --seconds 10
"""
