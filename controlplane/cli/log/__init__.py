"""``controlplane log``, ``audit`` and ``snapshot``: the decision log and its snapshots."""
