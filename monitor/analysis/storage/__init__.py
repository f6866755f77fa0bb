"""Storage areas: what their sweeps and applications say, computed after new runs."""
