"""What the lease store keeps for elections, and which request may change it: lease and contenders, or the lock."""
