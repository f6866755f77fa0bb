"""Building blocks of probes."""
