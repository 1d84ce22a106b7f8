"""``controlplane nodes`` and ``controlplane node``."""
