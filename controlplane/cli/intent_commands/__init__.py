"""Code of commands that send an intent: options, sending, the answer, and the dry run."""
