"""The cluster as a whole: its policy and the feature level of its log."""
