"""What can be asked of a state without changing anything: how the table stands, and what would happen if."""
