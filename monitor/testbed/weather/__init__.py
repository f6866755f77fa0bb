"""The weather of the local grid: random but seeded runtimes and faults at each step of time.

The generator reads no clock and no file: the same arguments give the same weather.
"""
