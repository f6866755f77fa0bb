"""Draw ``preco.png`` from the output of PreCo's kernels: ``.venv/bin/python docs/images/make_preco.py``."""

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
SLICE_HEIGHT = -0.25  # on the tilt axis; all small ellipsoids except two have their centres there
TITLES = (
    "Phantom",
    "One projection, tilt 0°",
    "Phantom without the missing wedge",
    "Reconstruction",
)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        figure = draw(Path(name))
    save_image(figure, Path(__file__).with_name("preco.png"))
    return 0


def draw(directory: Path) -> go.Figure:
    for name in ("phantom", "backproject"):
        source = ROOT / "probes" / "kernels" / f"{name}.c"
        subprocess.run(["cc", "-O3", "-o", directory / name, source, "-lm"], check=True)
    run_kernel(directory, "phantom project series", SIZE, PROJECTIONS, TILT)
    run_kernel(directory, "phantom draw drawn", SIZE, SIZE)
    run_kernel(directory, "backproject series volume", 0, SIZE, SIZE, TILT)
    index = round((SLICE_HEIGHT + 1) * SIZE / 2)
    phantom = read_mrc(directory / "drawn")[index]
    reference, volume = without_missing_wedge(phantom), read_mrc(directory / "volume")[index]
    return panels(
        (phantom, grey_range(phantom)),
        (read_mrc(directory / "series")[PROJECTIONS // 2], (0.0, 2.2)),
        (reference, grey_range(reference)),
        (volume, grey_range(volume)),
    )


def run_kernel(directory: Path, command: str, *numbers: int) -> None:
    program, *words = command.split()
    argv = [str(directory / program), *words, *map(str, numbers)]
    subprocess.run(argv, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def read_mrc(file: Path) -> np.ndarray:
    data = file.read_bytes()
    x, y, z = np.frombuffer(data[:12], np.int32)
    return np.frombuffer(data[1024:], np.float32).reshape(z, y, x)


def grey_range(image: np.ndarray) -> tuple[float, float]:
    """Return the densities of black and white: grey inside the skull, which is twice as dense, white."""
    inside = float(np.median(image[SIZE // 3 : 2 * SIZE // 3, SIZE // 3 : 2 * SIZE // 3]))
    return inside - 0.08, inside + 0.08


def without_missing_wedge(slice_: np.ndarray) -> np.ndarray:
    """Remove the spatial frequencies that no projection measures."""
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


def save_image(figure: go.Figure, file: Path) -> None:
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
