"""Availability and reliability of sites: status timelines, profiles, stored days, recomputation."""
