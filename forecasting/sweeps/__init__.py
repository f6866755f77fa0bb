"""Statistics of sweeps: which factor of a measurement matters, and which setting is best."""
