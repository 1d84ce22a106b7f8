"""``controlplane profiles``: the settings of the rules for bundles."""
