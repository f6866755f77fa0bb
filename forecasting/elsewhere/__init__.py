"""Predict how long an application's I/O takes on a system where it never ran, from replays of its calls."""
