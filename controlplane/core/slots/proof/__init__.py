"""The independent verification of plans. It shares only the types of problem and answer with the planner."""
