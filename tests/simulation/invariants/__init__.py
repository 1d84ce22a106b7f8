"""What must never be otherwise, looked at after every step, and what must be so again when faults have ended."""
