"""The routing table as readers see it: its rows, the hashing of keys, and the reader's copy of the table."""
