"""Retention: find and delete data that are older than the retention of their suite."""
