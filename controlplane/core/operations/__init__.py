"""What operators can ask for: each intent's rules, its effect, and its answer in the log.

``intents`` takes up what was asked; the ``..._operations`` are the effects, by what they are about; ``wishes`` and
``order_checks`` find what contradicts itself.
"""
