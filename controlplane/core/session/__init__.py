"""A node's session: what its agent does next, by what it reads and hears."""
