"""The decision log: events, decisions, the state that is their fold, and snapshots of it."""
