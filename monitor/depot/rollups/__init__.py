"""Hourly and daily rollups of samples, and the statistics computed from them."""
