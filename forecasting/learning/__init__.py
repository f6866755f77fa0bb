"""Building blocks of methods: each learns value by value and knows no series, files or services."""
