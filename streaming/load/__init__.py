"""The stream of load reports, divided over executors: decoding, the fold of each bucket, nodes, candidates."""
