"""Bundles: splittable hash ranges of namespaces, and the rules on their load."""
