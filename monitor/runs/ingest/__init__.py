"""Reports in: parsed, matched with the ledger, and stored in one transaction."""
