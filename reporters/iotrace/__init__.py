"""Traces of a program's I/O calls, and the signatures that are made of them."""
