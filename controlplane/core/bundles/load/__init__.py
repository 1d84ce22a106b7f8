"""Rules about load: averages over reports, resource usage, which bundles to split and which to shed.

Pure functions over plain values. The pipeline, replay and the tests call the same ones, so they cannot disagree. They
are the rules of Pulsar's modular load manager (4.x) and answer bit for bit alike; where Pulsar walks a hash
map, the order of the argument is the order, so the caller decides how ties are broken.
"""
