"""Bundles: hash ranges of namespaces, each with one owner, and the rules that find overloaded ones."""
