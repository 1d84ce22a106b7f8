"""Random kills of a pipeline under load, and what its tables hold afterwards."""
