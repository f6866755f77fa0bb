"""Backups of the depot: created, described by a manifest, restored and verified."""
