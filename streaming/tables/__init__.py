"""The tables' own room: created, written in files, committed, maintained, and claimed by one pipeline."""
