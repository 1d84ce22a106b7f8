"""What decisions changed, row by row: from the table ``decisions`` to the tables of changes and of present rows."""
