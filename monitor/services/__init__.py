"""One verb per file: everything that writes, or is called from two places."""
