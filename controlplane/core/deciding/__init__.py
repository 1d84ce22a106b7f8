"""From a state and observations to the next decision."""
