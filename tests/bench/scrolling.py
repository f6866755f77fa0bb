"""Scroll the overview of 500 sites with 200 series each in Chromium, and in turn an empty page as high."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from tests.bench import overview
from tests.bench.base import Result
from tests.bench.web import serving
from tests.monitor.web.pages.chromium import CHROMIUM, launched

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

TIMES = 7
FRAME_MS = 1000 / 60
TOLERANCE_MS = FRAME_MS / 2  # a frame that is left out makes two of it
SWEEPS = 8  # down and up
PIXELS_A_SECOND = 1600
SCREENS = {"desk": (1440, 900), "phone": (390, 844)}
TARGET = 0.95

DEADLINE_MILLISECONDS = 300_000  # of the first request, on a busy machine

# A hidden tab does not ask for updates: on this machine, the server would compute them between the frames.
_HIDE = "() => { Object.defineProperty(document, 'hidden', { get: () => true }); }"
_RECORD = """
() => {
  window.frames_at = [];
  const record = (at) => { window.frames_at.push(at); window.frame = requestAnimationFrame(record); };
  window.frame = requestAnimationFrame(record);
}
"""
_TAKE = "() => { cancelAnimationFrame(window.frame); return window.frames_at; }"


def measure() -> list[Result]:
    if CHROMIUM is None:
        print("skipped: there is no Chromium on the PATH")
        return []
    overview.load()
    client = Client()
    client.force_login(User.objects.create_user("bench-scrolling", is_superuser=True))
    cookie = client.cookies["sessionid"].value
    connections.close_all()
    with serving("monitor.wsgi:application") as (host, port), launched() as browser:
        results = []
        for screen, (width, height) in SCREENS.items():
            context = browser.new_context(viewport={"width": width, "height": height})
            context.set_default_timeout(DEADLINE_MILLISECONDS)
            base = f"http://{host}:{port}"
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": base}])
            page, empty = context.new_page(), context.new_page()
            page.goto(f"{base}/")
            page.evaluate(_HIDE)
            cells = page.locator("#overview td").count()
            pixels = int(page.evaluate("document.documentElement.scrollHeight"))
            empty.set_content(f"<p>empty</p><div style='height: {pixels}px'></div>")
            results.append(_result(screen, cells, pixels - height, page, empty))
            context.close()
        return results


def _result(screen: str, cells: int, distance: int, page: Page, empty: Page) -> Result:
    """Return the share of frames in time on *page* by that on an *empty* page, which are scrolled in turn."""
    for each in (page, empty):
        _intervals(each, distance)  # all has been drawn once
    pairs = [[_intervals(each, distance) for each in (page, empty)] for _ in range(TIMES)]
    shares = [statistics.median(_share_in_time(pair[n]) for pair in pairs) for n in (0, 1)]
    slowest = [statistics.median(max(pair[n]) for pair in pairs) for n in (0, 1)]
    return Result(
        name=f"overview of 500 x 200 series, {screen}: frames in time while scrolling / of an empty page",
        ratio=shares[0] / shares[1],
        target=TARGET,
        better="higher",
        figures={
            "frames within 16.7 ms and a half, %": 100 * shares[0],
            "the same of the empty page, %": 100 * shares[1],
            "longest interval, ms": slowest[0],
            "the same of the empty page, ms": slowest[1],
            "cells of the page": cells,
            "scrolled pixels": distance,
        },
    )


def _intervals(page: Page, distance: int) -> list[float]:
    """Scroll *page* down and up and return the milliseconds between the frames."""
    page.bring_to_front()
    page.evaluate("scrollTo(0, 0)")
    session = page.context.new_cdp_session(page)
    page.evaluate(_RECORD)
    for number in range(SWEEPS):
        _scroll(session, distance if number % 2 else -distance)
    frames = page.evaluate(_TAKE)
    session.detach()
    return [after - before for before, after in pairwise(frames)]


def _scroll(session: CDPSession, distance: int) -> None:
    gesture = {
        "x": 180,
        "y": 400,
        "yDistance": distance,
        "speed": PIXELS_A_SECOND,
        "gestureSourceType": "mouse",
    }
    session.send("Input.synthesizeScrollGesture", gesture)


def _share_in_time(intervals: list[float]) -> float:
    return sum(interval <= FRAME_MS + TOLERANCE_MS for interval in intervals) / len(intervals)
