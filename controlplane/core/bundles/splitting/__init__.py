"""Splitting of bundles: where to split one, which bundles to split, and what a split changes.

The rules are those of Pulsar's two load managers (4.x). The leader of the modular one finds bundles to split for all
nodes (``leader_task``) and carries them out (``execution``). In the extensible one each owner does so (``owner_task``).
"""
