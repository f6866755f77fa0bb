"""Bounds on the wait of a job in the queue of a batch system."""
