"""``controlplane controller``."""
