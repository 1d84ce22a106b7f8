"""Intents: what operators ask for, and who may ask for what."""
