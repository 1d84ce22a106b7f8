"""The decision log: events, decisions, the state that they add up to, and snapshots of it."""
