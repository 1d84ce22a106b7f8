"""One file for each question. Each prints a ratio or a distribution with its baseline and the target."""
