"""Histories that other systems measured, stored as runs of series here."""
