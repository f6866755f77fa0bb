"""Tokens: a limit on how many processes read and write a storage area at once."""
