"""``controlplane demo``: runs a whole cluster as separate processes, causes failures, checks and measures the results.

command     the options
play        the steps, in order, with their checks
cast        the command line of each process
stage       the processes, and their folder
processes   the life of one process: it ends with the demo, or ``--keep`` passes it to ``holder``
watching    the observed decisions and tables, with the times at which they were read
evidence    queries on the observed decisions and tables
traffic     the counts of the traffic's clients
checks      waiting for a condition with a deadline
delta       the closing SQL
picture     the state at one moment, for the screen
screen      a live display, or plain lines
summary     the report at the end
"""
