"""Incidents: failing series joined by the cause that they share, with what users did about it."""
