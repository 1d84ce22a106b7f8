"""The audit of a decision log: each decision is taken again by the code that takes decisions, and compared."""
