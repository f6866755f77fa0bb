"""Outcomes of runs, counted by hour, series and cause beside the rollups, and read together with raw runs."""
