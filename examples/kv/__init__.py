"""A small key-value service that divides its data into slots: an example of a service on the control plane.

store      a node's data of each slot, and the rules that fence the node
moving     fetching the data of gained slots from their former holders
load       a node's measurements of its own work
node       the service: ``python -m examples.kv.node``
client     the client library, and ``python -m examples.kv.client``
traffic    skewed traffic, with counts of the results
history    whether the acknowledged writes have an order that time allows
rolling_restart  a restart of all nodes under traffic: ``python -m examples.kv.rolling_restart``

What it shares with the publish-subscribe service is in :mod:`examples.serving`. Run it from the checkout's root, with a
cluster that has a controller. Start any number of nodes, each with its own id::

    python -m examples.kv.node --cluster local --bootstrap-servers localhost:9092 --node-id kv-1
    python -m examples.kv.node --cluster local --bootstrap-servers localhost:9092 --node-id kv-2
    python -m examples.kv.client --cluster local --bootstrap-servers localhost:9092 --seconds 10
"""
