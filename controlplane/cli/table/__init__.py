"""``controlplane table``."""
