"""Renew the pictures of the README from a running demo, best with a broken site that has an incident.

``manage.py testbed break sdsc login refused`` breaks one; after five minutes, while ``make demo`` runs::

    .venv/bin/python docs/images/make_screenshots.py http://127.0.0.1:8000 var
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
WIDTH = 1440
PASSWORD_CHARACTERS = 12  # of the secret, as `make demo` prints it
ZONE = "America/Chicago"
FAILED = "/runs/?outcome=failed&series=circle-main"
# Name, path, colour scheme, height. The path of a failed run is found on the page ``FAILED``.
PICTURES: tuple[tuple[str, str, Literal["light", "dark"], int], ...] = (
    ("overview-light", "/", "light", 700),
    ("series-dark", "/series/gather-main/", "dark", 870),
    ("run-light", "", "light", 900),
    ("rank-light", "/forecasts/rank/?application=preco", "light", 860),
    ("accuracy-light", "/forecasts/accuracy/", "light", 900),
)


def main(url: str, var: Path) -> int:
    secret = (var / "secrets" / "demo-password-viewer").read_text(encoding="utf-8")
    password = secret[:PASSWORD_CHARACTERS]
    chosen = sys.argv[3:]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, path, scheme, height in PICTURES:
            if not chosen or name in chosen:
                page = logged_in(browser, url, password, scheme, height)
                page.goto(url + (path or failed_run(page, url)))
                page.wait_for_load_state("networkidle")
                save(page.screenshot(), Path(__file__).with_name(f"{name}.png"))
                page.context.close()
    return 0


def logged_in(
    browser: Browser, url: str, password: str, scheme: Literal["light", "dark"], height: int
) -> Page:
    context = browser.new_context(
        viewport={"width": WIDTH, "height": height}, color_scheme=scheme, timezone_id=ZONE
    )
    context.add_cookies([{"name": "timezone", "value": ZONE, "url": url}])
    page = context.new_page()
    page.goto(f"{url}/login/")
    page.fill("#id_login", "viewer")
    page.fill("#id_password", password)
    page.click("main button[type=submit]")
    page.wait_for_url(f"{url}/")
    return page


def failed_run(page: Page, url: str) -> str:
    """Return the path of the newest failed run of Circle."""
    page.goto(url + FAILED)
    path = page.locator("main table a[href^='/runs/']").first.get_attribute("href")
    if path is None:
        raise SystemExit(f"{url}{FAILED} lists no failed run; break a site")
    return path


def save(screenshot: bytes, file: Path) -> None:
    """Write *screenshot* with 256 colours: a third of its size."""
    image = Image.open(io.BytesIO(screenshot)).convert("RGB")
    reduced = image.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(file, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(f"{__doc__}")
    sys.exit(main(sys.argv[1].rstrip("/"), Path(sys.argv[2])))
