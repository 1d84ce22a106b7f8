"""Which nodes hold and lead which slots: the planner of least movement."""
