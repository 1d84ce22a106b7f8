"""Load rules: averages over reports, resource usage, and the choice of bundles to split and to shed.

They are the rules of Pulsar's modular load manager (4.x) as pure functions, with results equal to the bit. The
pipeline, replay and the tests call the same functions. Where Pulsar iterates over a hash map, the order of the argument
counts, so that the caller decides how ties are broken.
"""
