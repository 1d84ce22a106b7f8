"""Slots: the table, pins and plans, the slot policies, and the proof that a plan moves as little as possible."""
