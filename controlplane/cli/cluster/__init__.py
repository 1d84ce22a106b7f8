"""What a cluster is made of: its topics and rights, local services, namespaces, feature level."""
