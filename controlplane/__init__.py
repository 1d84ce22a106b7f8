"""An event-sourced control plane over Kafka."""

__version__ = "0.1.0"
