"""Intents: the requests of operators, and the rights to make them."""
