"""Settings that belong to no single rule, and how the knobs of settings are declared and read."""
