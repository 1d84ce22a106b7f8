"""``controlplane policy``."""
