"""Commands on the parts of a cluster: topics, rights, local services, namespaces, feature level."""
