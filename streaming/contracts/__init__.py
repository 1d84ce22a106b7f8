"""The contract of each Delta table: its columns, the meaning of a row, and its properties."""
