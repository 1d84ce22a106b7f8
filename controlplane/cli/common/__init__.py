"""Code of all commands: global options, connections, output, errors."""
