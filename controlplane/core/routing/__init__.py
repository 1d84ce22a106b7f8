"""The routing table as readers see it: rows, hashing of keys, and a reader's replica."""
