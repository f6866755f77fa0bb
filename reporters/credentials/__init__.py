"""Check the reporter's credentials before a run uses them: one module for each kind of credential."""
