"""Draws ``preco.png`` from what PreCo's kernels make: ``.venv/bin/python docs/images/make_preco.py``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from plotly.subplots import make_subplots

ROOT = Path(__file__).resolve().parents[2]
SIZE, PROJECTIONS, TILT = 512, 61, 60
WIDTH, HEIGHT = 1500, 416
SLICE_AT = -0.25  # along the tilt axis, where all but two of the small ellipsoids are
TITLES = (
    "Phantom",
    "One projection, tilt 0°",
    "What ±60° can tell of it",
    "Reconstruction",
)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        figure = drawn(Path(name))
    photograph(figure, Path(__file__).with_name("preco.png"))
    return 0


def drawn(directory: Path) -> go.Figure:
    for name in ("phantom", "backproject"):
        source = ROOT / "probes" / "kernels" / f"{name}.c"
        subprocess.run(["cc", "-O3", "-o", directory / name, source, "-lm"], check=True)
    kernel(directory, "phantom project series", SIZE, PROJECTIONS, TILT)
    kernel(directory, "phantom draw drawn", SIZE, SIZE)
    kernel(directory, "backproject series volume", 0, SIZE, SIZE, TILT)
    index = round((SLICE_AT + 1) * SIZE / 2)
    phantom = read(directory / "drawn")[index]
    return panels(
        (phantom, brain(phantom)),
        (read(directory / "series")[PROJECTIONS // 2], (0.0, 2.2)),
        *((image, brain(image)) for image in (within_tilts(phantom), read(directory / "volume")[index])),
    )


def kernel(directory: Path, command: str, *numbers: int) -> None:
    program, *words = command.split()
    argv = [str(directory / program), *words, *map(str, numbers)]
    subprocess.run(argv, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def read(file: Path) -> np.ndarray:
    data = file.read_bytes()
    x, y, z = np.frombuffer(data[:12], np.int32)
    return np.frombuffer(data[1024:], np.float32).reshape(z, y, x)


def brain(image: np.ndarray) -> tuple[float, float]:
    """Grey for what is inside the skull; the skull itself is twice as dense, and white."""
    inside = float(np.median(image[SIZE // 3 : 2 * SIZE // 3, SIZE // 3 : 2 * SIZE // 3]))
    return inside - 0.08, inside + 0.08


def within_tilts(slice_: np.ndarray) -> np.ndarray:
    """The slice without the spatial frequencies that no projection measures."""
    frequencies = np.fft.fftfreq(2 * SIZE)
    ky, kx = np.meshgrid(frequencies, frequencies, indexing="ij")
    measured = np.abs(ky) <= np.tan(np.radians(TILT)) * np.abs(kx)
    return np.fft.ifft2(np.fft.fft2(slice_, (2 * SIZE, 2 * SIZE)) * measured).real[:SIZE, :SIZE]


def panels(*images: tuple[np.ndarray, tuple[float, float]]) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(images), subplot_titles=TITLES, horizontal_spacing=0.012)
    for column, (image, (low, high)) in enumerate(images, start=1):
        heat = go.Heatmap(z=image, zmin=low, zmax=high, colorscale="gray", showscale=False)
        figure.add_trace(heat, row=1, col=column)
        figure.update_yaxes(scaleanchor=f"x{column}", visible=False, row=1, col=column)
        figure.update_xaxes(visible=False, constrain="domain", row=1, col=column)
    margin = {"l": 12, "r": 12, "t": 48, "b": 12}
    white = {"paper_bgcolor": "white", "plot_bgcolor": "white"}
    return figure.update_layout(width=WIDTH, height=HEIGHT, margin=margin, font_size=17, **white)


def photograph(figure: go.Figure, file: Path) -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        page_file = Path(name) / "page.html"
        figure.write_html(page_file, include_plotlyjs=True, config={"staticPlot": True})
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(page_file.as_uri())
        page.wait_for_selector(".hm")
        page.add_style_tag(content="body { margin: 0 }")
        page.screenshot(path=str(file))
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
