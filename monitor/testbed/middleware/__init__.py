"""Real servers of grid middleware on this machine: one kind per file, each server a context manager.

The servers are programs of the distribution (``packages.txt``), run in the foreground as the current user. A
guardian process ends a server with all its children, even if the process that started the server is killed.
"""
