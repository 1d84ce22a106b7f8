"""``controlplane log``, ``audit`` and ``snapshot``: the decision log and what is kept of it."""
