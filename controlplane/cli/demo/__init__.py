"""``controlplane demo``: a whole cluster as processes of its own, played through its main job and measured.

command     the options
play        what happens, in order, and what has to come of it
cast        the command line of each process
stage       the processes, and the folder in which they keep everything
processes   the life of one process; ended with us, or handed over to ``holder`` by ``--keep``
watching    what the log and the table say, with the times at which they said it
evidence    questions to what was seen
traffic     what the traffic's clients counted
checks      waiting for a condition with a deadline
delta       the closing SQL
picture     one moment, for the screen
screen      a live picture, or plain lines
summary     what is printed at the end
"""
