"""The real controllers, agents and clients over virtual time, in a world that fails in every way it can.

One seed is one run: it decides who runs when, what is slow, what breaks, and nothing else does.
"""
