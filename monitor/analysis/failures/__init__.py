"""Failures: what broke, by signature."""
