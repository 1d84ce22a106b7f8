"""A controller: it follows the log, observes the inputs, stands for election, and leads while it may."""
