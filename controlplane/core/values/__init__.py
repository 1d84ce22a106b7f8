"""What every subject is written in: identifiers, canonical form, places in the log. It knows no subject."""
