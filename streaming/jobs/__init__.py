"""What runs: the streaming queries and the application that keeps them going."""
