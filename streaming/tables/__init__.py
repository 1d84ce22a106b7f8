"""The tables' own room: created, written in files, committed, kept up, and claimed by one pipeline."""
