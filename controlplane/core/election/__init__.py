"""Who may lead: lease, lock, and the machines that stand for election and lead. It knows nothing of the state."""
