"""Forecasts: issued when data arrive, stored, and scored against the next run."""
