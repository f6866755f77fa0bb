"""Building blocks that several probes use; none of these modules is a probe."""
