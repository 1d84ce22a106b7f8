"""The invariants, checked after every step, and the conditions that have to hold after the end of all faults."""
