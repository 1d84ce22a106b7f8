"""Independent checks: the invariants of every state and step, and whether a whole log does what it says.

Leaders run the inexpensive part before each commit. The rest reads a log as an independent reader does. It derives
again what the planner had to know, and shares no code with deciding, with the effects of intents, or with planning. It
shares only definitions: how events apply, which orders contradict each other, and SOFARegistry's own classes, with
which the decisions of `sofa` are compared.
"""
