"""Signatures: the regular expressions that name the cause of a failed run, shipped and of users."""
