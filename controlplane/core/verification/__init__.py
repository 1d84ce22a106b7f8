"""Checks from outside: what always holds, and whether a whole log does what it says.

Leaders run the cheap part before each commit. The rest reads a log as an independent reader does: it finds out again
what the planner had to know, and shares no code with deciding, with the effects of intents, or with planning. What it
shares is what defines the words: how events apply, which orders contradict each other, and SOFARegistry's own classes,
to which `sofa` is held.
"""
