"""HiveMQ's consistent hashing ring: which nodes own and copy a key, by the names of the nodes alone.

text_hash     the hash of a text, and the places of a node on a ring
hash_ring     one ring: nodes join and leave it, and it answers for keys
member_rings  the two rings of a cluster: who serves, is written to and may be read while nodes come and go
"""
