"""Sweeps of streams on systems with known times."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from forecasting.reading.sweeps import StreamRow
from forecasting.sweeps.sweet_spot import Streams

Times = Mapping[Streams, float]  # seconds of MADbench

# From the published tables, by readers and writers.
PUBLISHED: Mapping[str, Times] = {
    "xeon-eide": {
        Streams(4, 4): 243.0,
        Streams(4, 1): 235.0,
        Streams(1, 4): 199.0,
        Streams(1, 1): 189.0,
    },
    "p690-scsi": {
        Streams(16, 16): 355.0,
        Streams(16, 1): 358.0,
        Streams(1, 16): 318.0,
        Streams(1, 1): 311.0,
    },
    "beowulf-raid5": {
        Streams(16, 16): 6353.0,
        Streams(1, 16): 8690.0,
        Streams(1, 1): 6973.0,
        Streams(2, 1): 6406.0,
        Streams(4, 1): 5741.0,
        Streams(8, 1): 5627.0,
        Streams(16, 1): 6131.0,
    },
}
# A device that no limit helps.
FLAT: Times = {
    Streams(readers, writers): 100.0 if (readers, writers) == (8, 8) else 100.5
    for readers in (1, 2, 4, 8)
    for writers in (1, 8)
}
NOISE = 0.02


def swept(times: Times, seed: int, passes: int = 6, noise: float = NOISE) -> list[StreamRow]:
    """Return runs of all settings of *times*; whole passes drift, and the first one is cold."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(1, passes + 1):
        drift = draw.normal(0.0, noise) + (0.2 if number == 1 else 0.0)
        for streams, seconds in times.items():
            taken = seconds * float(np.exp(drift + draw.normal(0.0, noise)))
            rows.append(StreamRow(number, streams.readers, streams.writers, taken, {}))
    return rows


def true_saving(times: Times, streams: Streams) -> float:
    """Return the share of the time of all streams at once that *streams* save."""
    return 1.0 - times[streams] / times[max(times)]
