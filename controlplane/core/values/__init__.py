"""Types that all subjects of the core share: identifiers, canonical form, positions. They depend on no subject."""
