"""Reference implementation of tomography, in float64 and with the filter as a convolution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HEADER_BYTES = 1024
# Kak and Slaney 1988, page 102: centre, half axes, degrees about z, density.
ELLIPSOIDS = (
    (0, 0, 0, 0.69, 0.92, 0.9, 0, 2),
    (0, 0, 0, 0.6624, 0.874, 0.88, 0, -0.98),
    (-0.22, 0, -0.25, 0.41, 0.16, 0.21, 108, -0.02),
    (0.22, 0, -0.25, 0.31, 0.11, 0.22, 72, -0.02),
    (0, 0.35, -0.25, 0.21, 0.25, 0.5, 0, 0.02),
    (0, 0.1, -0.25, 0.046, 0.046, 0.046, 0, 0.02),
    (-0.08, -0.65, -0.25, 0.046, 0.023, 0.02, 0, 0.01),
    (0.06, -0.65, -0.25, 0.046, 0.023, 0.02, 90, 0.01),
    (0.06, -0.105, 0.625, 0.056, 0.04, 0.1, 90, 0.02),
    (0, 0.1, 0.625, 0.056, 0.056, 0.1, 0, -0.02),
)


def read_mrc(file: Path) -> Array:
    """Return the values of an MRC file of 32-bit reals as an array (z, y, x)."""
    data = file.read_bytes()
    x, y, z, mode = np.frombuffer(data[:16], np.int32)
    assert (mode, data[208:212]) == (2, b"MAP ")
    return np.frombuffer(data[HEADER_BYTES:], np.float32).reshape(z, y, x).astype(np.float64)


def write_mrc(file: Path, values: Array) -> None:
    """Write *values* (z, y, x) with a minimal MRC header."""
    header = np.zeros(256, np.int32)
    header[:4] = (*values.shape[::-1], 2)
    header[52] = np.frombuffer(b"MAP ", np.int32)[0]
    file.write_bytes(header.tobytes() + values.astype(np.float32).tobytes())


def cell_centres(count: int, size: int) -> Array:
    """Return the centres of *count* cells of width 2 / *size*, centred on 0."""
    return (2 * np.arange(count) + 1 - count) / size


def tilts(projections: int) -> Array:
    return np.radians(np.linspace(-60, 60, projections))


def density(x: Array, y: Array, z: Array) -> Array:
    """Return the density of the phantom at points."""
    total = np.zeros(np.broadcast(x, y, z).shape)
    for x0, y0, z0, a, b, c, degrees, value in ELLIPSOIDS:
        turn = np.radians(degrees)
        along = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn)
        across = (y - y0) * np.cos(turn) - (x - x0) * np.sin(turn)
        total += value * ((along / a) ** 2 + (across / b) ** 2 + ((z - z0) / c) ** 2 <= 1)
    return total


def phantom(size: int, thickness: int) -> Array:
    z, y, x = np.meshgrid(
        cell_centres(size, size), cell_centres(thickness, size), cell_centres(size, size), indexing="ij"
    )
    return density(x, y, z)


def reconstruction(series: Array, thickness: int) -> Array:
    """Reconstruct a volume (slice, row, column) from *series* (projection, slice, column)."""
    projections, slices, size = series.shape
    distances = np.arange(1 - size, size)
    ramp = np.where(distances % 2 == 1, -1 / (np.pi * np.maximum(np.abs(distances), 1)) ** 2, 0.0)
    ramp[distances == 0] = 0.25
    y, x = np.meshgrid(cell_centres(thickness, size), cell_centres(size, size), indexing="ij")
    volume = np.zeros((slices, thickness, size))
    for tilt, image in zip(tilts(projections), series, strict=True):
        columns = (x * np.cos(tilt) + y * np.sin(tilt)) * size / 2 + (size - 1) / 2
        for number, row in enumerate(image):
            filtered = np.convolve(row, ramp)[size - 1 : 2 * size - 1] * size / 2
            padded = np.concatenate(([0.0], filtered, [0.0]))
            volume[number] += np.interp(columns, np.arange(-1, size + 1), padded, left=0, right=0)
    step: float = np.radians(120) / (projections - 1)
    return volume * step


def without_missing_wedge(slice_: Array) -> Array:
    """Remove the spatial frequencies that no tilt measures from a square slice, padded with zeros."""
    size = len(slice_)
    frequencies = np.fft.fftfreq(4 * size)
    ky, kx = np.meshgrid(frequencies, frequencies, indexing="ij")
    measured = np.abs(ky) <= np.tan(np.radians(60)) * np.abs(kx) + 1e-12
    spectrum = np.fft.fft2(slice_, (4 * size, 4 * size)) * measured
    return np.asarray(np.fft.ifft2(spectrum).real[:size, :size])


def common_cylinder(size: int, thickness: int) -> npt.NDArray[np.bool_]:
    """Return a mask (row, column) of the voxels that every projection covers."""
    y, x = np.meshgrid(cell_centres(thickness, size), cell_centres(size, size), indexing="ij")
    return np.asarray(x**2 + y**2 <= 1)


def correlation(first: Array, second: Array) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])
