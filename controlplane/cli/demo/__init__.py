"""``controlplane demo``: a whole cluster as processes of its own, played through its main job and measured.

command     the options
play        what happens, in order, and what has to come of it
stage       the processes that take part, and where they keep what
processes   the life of one process; ended with us, or handed over to ``holder`` by ``--keep``
watching    what the log and the table say, with the times at which they said it
traffic     what the traffic's client counted
checks      waiting for a condition with a deadline
screen      what is shown meanwhile: a live picture, or plain lines
summary     what is printed at the end
"""
