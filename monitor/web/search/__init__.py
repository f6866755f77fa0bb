"""Search: lists of series and runs by filter, and everything whose name has a text."""
