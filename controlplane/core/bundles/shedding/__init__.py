"""Shedding: which bundles an overloaded node should give away.

Each shedder is a pure function of a view of loads, its settings and its memory. Its result names, for every bundle,
what was measured and the limit that it was held against. Where a floating-point sum or a tie depends on an order, it is
the order of the view. On values that no working node reports (negative, infinite, not a number) a shedder does what
Pulsar does; :mod:`controlplane.core.bundles.load.plausible` keeps such reports away from it.
"""
