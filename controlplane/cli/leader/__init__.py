"""``controlplane leader``."""
