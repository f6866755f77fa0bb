"""Building blocks of methods. Each learns value by value and is independent of series and files."""
