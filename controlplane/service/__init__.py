"""The controller: follows the log, observes the inputs, stands for election, and decides while it leads."""
