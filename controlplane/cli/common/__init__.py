"""What all commands have in common: global options, connections, output, errors."""
