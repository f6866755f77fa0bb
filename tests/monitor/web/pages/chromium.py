"""Chromium for the tests of pages in a browser."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

import pytest
from django.db import connections
from playwright.sync_api import Browser, expect, sync_playwright

# The headless shell takes half the CPU time of Chromium for the same pages: it has no windows to manage.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DEADLINE_MILLISECONDS = 60_000


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser during a block.

    The event loop of Playwright runs in the thread of the tests: Django then takes every query for a mistake,
    and uses other connections than without it. Earlier connections must not be among those that a test cuts.
    """
    connections.close_all()
    expect.set_options(timeout=DEADLINE_MILLISECONDS)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
        connections.close_all()
