"""The weather of the local grid: random but seeded runtimes and faults at each step of time.

The generator reads no clock and no file: the same arguments give the same weather.
"""

# Raise it when a profile and a seed give other runtimes or faults than before: depots of demos record it.
EDITION = 3
