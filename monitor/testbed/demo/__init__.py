"""The demo: the whole of gridcast over the local grid, in one foreground process tree."""
