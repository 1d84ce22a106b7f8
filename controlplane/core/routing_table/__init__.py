"""The routing table as everybody reads it: its rows and their digest, how a key finds its row, a reader's copy."""
