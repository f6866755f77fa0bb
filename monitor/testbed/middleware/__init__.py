"""Real servers of grid middleware on this machine, one kind a file, each a context in which it serves.

They are programs of the distribution (``packages.txt``), run in the foreground as whoever starts them, under
a guardian that ends them and all that they started, also when their owner is killed.
"""
