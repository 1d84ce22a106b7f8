"""The independent check of plans: it shares nothing with the planner but the words of the problem and the answer."""
