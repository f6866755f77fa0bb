"""Import histories that other systems measured, as runs of series."""
