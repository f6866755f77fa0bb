"""Forecasts: issued when data arrive, kept, scored against the run that follows."""
