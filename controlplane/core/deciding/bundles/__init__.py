"""Bundles in a decision: hands them off step by step, begins orders, and repairs what a lost node has left.

A planned move of a bundle is a handoff in decisions: its owner releases it, the next owner opens it, then owns it. What
the nodes have done stands in their heartbeats (``BundleStepReport``). A step that does not come about ends after a time
of the log (``consent``, and the policy's ``handoff_limit_ms``), so that no order stands for ever. A bundle whose owner
is lost waits for nothing: another node owns it at once.

Each row follows from the one before it by the rule of Pulsar's ownership channel
(``controlplane.core.bundles.ownership_channel.live_rows``). A node that takes part in no handoffs gets and loses its
bundles by a single row, which is forced.

``hand_off_bundles`` and ``repair_bundles`` are the entrances. ``bundle_round`` collects the rows of a decision,
``steps`` goes on with bundles in flight, ``begin`` begins orders.
"""
