"""Retention: find and delete data that are older than their suite keeps them."""
