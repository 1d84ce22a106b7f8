"""The ``controlplane`` command: one noun, one verb, long options, text for people and JSON for programs."""
