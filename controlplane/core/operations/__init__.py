"""Operations: the effect of each kind of intent, and its answer in the log.

``intent_effects`` takes up intents. Each ``..._operations`` declares the operations of one subject, ``operation``
defines what has to be declared, and ``registry`` maps kinds of intents to operations. ``intent_conflicts`` finds
intents that contradict each other, and ``order_checks`` finds standing orders that do.
"""
