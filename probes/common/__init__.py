"""Functions that several probes share."""
