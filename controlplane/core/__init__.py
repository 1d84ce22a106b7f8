"""The pure core: no I/O, no clock, no randomness, no logging, no threads.

``observe`` folds raw inputs into observations, ``decide`` turns a state and observations into a decision, ``apply``
is the only function that changes a state. Time is an argument or a field of a record, never a call.
"""
