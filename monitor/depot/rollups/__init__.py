"""Hourly and daily rollups of samples, and the statistics read from them."""
