"""Checks of the reporter's credentials before a run needs them: one file for each kind."""
