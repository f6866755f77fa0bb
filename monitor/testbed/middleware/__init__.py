"""Real servers of grid middleware on this machine: one kind per file, each server a context manager.

They are programs of the distribution (``packages.txt``), run in the foreground as the current user. A
guardian process ends them with all their children, also if their owner is killed.
"""
