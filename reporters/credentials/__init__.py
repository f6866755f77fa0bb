"""What lets the reporter in somewhere, checked before it is needed: one file a kind."""
