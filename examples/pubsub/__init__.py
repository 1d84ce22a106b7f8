"""A small publish-subscribe service that divides its topics by bundles: an example of a service on the control plane.

topic_file       the messages of one topic in a file that all brokers share, and how a stale owner is noticed
open_topics      the topics that a broker has open
load             a broker's measurements of its own work, by topic
broker           the service: ``python -m examples.pubsub.broker``
client           the client library: it finds the broker of a topic, and asks again where it is told to
traffic          producers and subscribers at a given rate, with a ledger of what was acknowledged
rolling_restart  a restart of all brokers under traffic: ``python -m examples.pubsub.rolling_restart``

What it shares with the key-value service is in :mod:`examples.serving`; :mod:`examples.kv_and_pubsub` serves both by
one node. Run it from the checkout's root, with a cluster that has a controller and a namespace::

    controlplane namespaces create shop/orders
    python -m examples.pubsub.rolling_restart --cluster local --bootstrap-servers localhost:9092 --namespace shop/orders
"""
