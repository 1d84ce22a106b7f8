"""Leader election: lease, lock, and the state machines of a controller. This package does not depend on the state."""
