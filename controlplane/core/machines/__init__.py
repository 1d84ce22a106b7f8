"""Passive machines: told what happened and what time it is, they answer what to do and when to wake them next."""
