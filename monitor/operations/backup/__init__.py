"""Backups of the depot: create, describe in a manifest, restore and verify."""
