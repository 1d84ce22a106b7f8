"""The version of this software, which decisions and snapshots carry."""

__version__ = "0.1.0"
