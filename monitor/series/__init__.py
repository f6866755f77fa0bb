"""Series and their segments: what a series runs, and how that changed."""
