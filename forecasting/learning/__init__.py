"""What methods are made of: each learns a value at a time and knows nothing of series, files or services."""
