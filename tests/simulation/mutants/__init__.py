"""Bugs on purpose: does the simulation find them?"""
