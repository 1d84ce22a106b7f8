"""Composition: the only place where services meet adapters. One module for each kind of process."""
