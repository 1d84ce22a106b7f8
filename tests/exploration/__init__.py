"""Exploring: every interleaving of the machines' steps, breadth first, to a stated depth."""
