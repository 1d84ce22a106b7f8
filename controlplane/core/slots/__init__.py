"""Slots: the table, pins and plans, the policies that fill it, and the proof that a plan moves the least."""
