"""The streaming queries, and the application that runs them."""
