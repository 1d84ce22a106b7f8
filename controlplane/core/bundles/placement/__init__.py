"""The choice of a node for a bundle: strategies, filters and the two ways in which Pulsar combines them.

``contract`` holds the protocols. ``modular`` and ``extensible`` are the selections of Pulsar's two load managers;
``shed_checks`` decides whether a bundle that a shedder chose may leave its node.
"""
