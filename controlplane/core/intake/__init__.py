"""What the inputs say, and what follows from it for the members.

``observations`` folds raw inputs into soft state, ``judging`` tells which heartbeats count, ``admission`` takes joins
and leaves up, and ``expiry`` fences who has been silent for too long.
"""
