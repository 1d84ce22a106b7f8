"""What operators can ask for: the effect of each kind of intent, and its answer in the log.

``intent_effects`` takes up intents. Each ``..._operations`` declares the operations of one subject, ``operation`` says
what has to be declared, ``registry`` has all of them by the kind of intent. ``intent_conflicts`` finds intents that
contradict each other, ``order_checks`` standing orders that do.
"""
