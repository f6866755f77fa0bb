"""Retention: which data are older than their suite keeps them, and their removal."""
