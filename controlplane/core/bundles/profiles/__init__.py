"""Profiles: which rules and settings decide, by name, and what a configuration may change in them."""
