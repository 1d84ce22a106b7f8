"""What the leader of a load manager does by the clock, and with what its shedder chose."""
