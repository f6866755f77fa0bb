"""Series and their segments: the configuration that a series runs, and its changes."""
