"""Samples: written, read, paired, downsampled, exported."""
