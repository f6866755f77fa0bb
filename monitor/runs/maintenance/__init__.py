"""Maintenance windows: announced by users and feeds, with a record of each change, and when each is open."""
