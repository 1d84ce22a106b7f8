"""``controlplane pipeline`` and ``controlplane sql``."""
