"""What a cluster is made of: its topics and rights, local parts, namespaces, feature level."""
