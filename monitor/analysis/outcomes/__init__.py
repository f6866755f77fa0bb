"""Outcomes: runs counted by hour, series and cause beside the rollups; their rates, breakdowns, episodes."""
