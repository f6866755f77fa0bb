"""Reports in: read, matched with the ledger, and written in one transaction."""
