"""Records of topics as rows, and rows as records again."""
