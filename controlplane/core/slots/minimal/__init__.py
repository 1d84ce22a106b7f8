"""The planner of least movement: which nodes hold and lead which slots."""
