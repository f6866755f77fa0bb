"""The demo: all of gridcast over a grid of this machine, in one foreground process tree."""
