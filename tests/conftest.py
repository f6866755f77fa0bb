"""Fixtures for every test. The servers of the run are started before Django is set up: see ``servers.py``."""
