"""The expectation ledger: which runs are expected, what may start, and how each run ended."""
