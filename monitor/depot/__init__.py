"""How samples are written and read. Reached through services only."""
