"""Takes the next decision from a state and observations."""
