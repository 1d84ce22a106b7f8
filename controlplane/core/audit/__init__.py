"""The audit of a decision log: each decision is taken again from the recorded inputs, and compared with the log."""
