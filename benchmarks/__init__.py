"""One file a question; each prints a ratio or a distribution beside its baseline and the design's target."""
