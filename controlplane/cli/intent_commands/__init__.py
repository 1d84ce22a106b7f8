"""What commands that send an intent have in common: options, sending, the answer, and a dry run."""
