"""Filled depots for tests in a browser, visits to their pages, and what each page must fulfil.

A test takes the fixture ``visitors`` (a browser over the full depot) or calls ``look``::

    def test_my_page_looks_well(visitors: Visitors, depot: FilledDepot) -> None:
        assert look(visitors, "/my/page/", "my-page") == []
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from monitor.core import env
from monitor.models import Run
from tests.monitor.web.pages.chromium import DEADLINE_MILLISECONDS

SCREENS = {"phone": (390, 844), "desk": (1440, 900)}
SIZES = {**SCREENS, "wall": (3840, 2160)}
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SCREENSHOTS = env.ROOT / "var" / "screenshots"
UPDATE_MILLISECONDS = 10_000  # between the updates of an open page
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What the console may say: a page that does not exist is one of the pages that are looked at.
EXPECTED_MESSAGES = ("404",)


@dataclass
class FilledDepot:
    """A depot, stored once as the rows of its tables; each test restores them.

    Attributes:
        session, administrator: the cookies of a logged-in operator and of an administrator.
        failed, passed: runs to open; unsaved if there are none.
    """

    session: str
    administrator: str
    failed: Run = field(default_factory=Run)
    passed: Run = field(default_factory=Run)
    rows: dict[str, bytes] = field(default_factory=dict)

    def store(self) -> None:
        with connection.cursor() as cursor:
            for table in connection.introspection.django_table_names(only_existing=True, include_views=False):
                with cursor.copy(f"COPY (SELECT {_columns(cursor, table)} FROM {table}) TO STDOUT") as copy:
                    self.rows[table] = b"".join(bytes(block) for block in copy)

    def restore(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # no triggers: rows are complete
            for table, rows in self.rows.items():
                cursor.execute(f"SELECT EXISTS (SELECT FROM {table})")
                if rows and not cursor.fetchone()[0]:
                    with cursor.copy(f"COPY {table} ({_columns(cursor, table)}) FROM STDIN") as copy:
                        copy.write(rows)


def _columns(cursor: CursorWrapper, table: str) -> str:
    """Return the columns of *table* but those that the database computes."""
    cursor.execute(
        "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        [table],
    )
    return str(cursor.fetchone()[0])


@dataclass
class Visit:
    """A logged-in browser; *complaints* are the warnings and errors of its console."""

    context: BrowserContext
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str, *, with_clock: bool = False) -> Page:
        """Open *path* in a tab; *with_clock*, ``pass_interval`` can move the time of the page on."""
        page = self.tab()
        if with_clock:
            page.clock.install()
        page.goto(self.base + path)
        return page

    def tab(self) -> Page:
        """Open an empty tab, whose console is noted."""
        page = self.context.new_page()
        page.set_default_timeout(DEADLINE_MILLISECONDS)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)


@dataclass
class Visitors:
    browser: Browser
    base: str
    session: str
    open_contexts: list[BrowserContext] = field(default_factory=list)

    def come(self, screen: str = "desk", *, with_scripts: bool = True) -> Visit:
        width, height = SCREENS[screen]
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, java_script_enabled=with_scripts
        )
        self.open_contexts.append(context)
        context.add_cookies([{"name": "sessionid", "value": self.session, "url": self.base}])
        return Visit(context, self.base)


def interactive(chart: Locator) -> Locator:
    """Point at a chart that the server has drawn, until Plotly has drawn it."""
    chart.hover()
    expect(chart).to_have_class(re.compile(r"\bis-interactive\b"))
    return chart


def pass_interval(page: Page) -> None:
    """Move the time of *page* on by the interval of its updates."""
    page.clock.fast_forward(UPDATE_MILLISECONDS)


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than the window.

    A locator waits for the element: while the browser replaces a document, there is none.
    """
    return int(page.locator("html").evaluate("root => root.scrollWidth - window.innerWidth"))


def fits_every_screen(page: Page) -> None:
    for screen, (width, height) in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert overflow(page) <= 0, (page.url, screen, scheme)


def look(
    visitors: Visitors,
    path: str,
    name: str,
    *,
    screens: Iterable[str] = SCREENS,
    schemes: Iterable[str] = SCHEMES,
    with_axe: bool = True,
    html: str | None = None,
) -> list[str]:
    """Visit *path* on each screen in each scheme and return what is wrong; nothing if the page is well.

    *screens* are names of ``SIZES``. Checked are the console, with it the content security policy, the width
    of the page, and the rules of axe-core; at last, every chart becomes interactive. A screenshot of
    each visit is written to ``var/screenshots/NAME-SCREEN-SCHEME.png``. *html* is shown instead of what the
    server answers: a page to which many steps lead, or none that a test can take.
    """
    visit = visitors.come()
    page = visit.tab()
    if html is not None:
        page.route(visit.base + path, lambda route: route.fulfill(body=html, content_type="text/html"))
    found: list[str] = []
    for screen in screens:
        width, height = SIZES[screen]
        page.set_viewport_size({"width": width, "height": height})
        for scheme in schemes:
            where = f"{path} ({screen}, {scheme})"
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(visit.base + path)
            page.locator("main").first.wait_for()
            if (excess := overflow(page)) > 0:
                found.append(f"{where}: {excess} px wider than the screen: {_widest(page)}")
            found += [f"{where}: {violation}" for violation in (_violations(page) if with_axe else [])]
            _shoot(page, f"{name}-{screen}-{scheme}")
    for chart in page.locator("[data-chart]").all():
        interactive(chart)
    complaints = [text for text in visit.complaints if not any(part in text for part in EXPECTED_MESSAGES)]
    visit.context.close()
    return [*found, *(f"{path}: {text}" for text in complaints)]


def _widest(page: Page) -> str:
    """Return the first elements that reach beyond the right edge, for the message of a failed test."""
    script = (
        "() => [...document.querySelectorAll('main *, header *')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .tabs'))"
        ".slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(' | ')"
    )
    return str(page.evaluate(script))


def _violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate(
        "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})"
        ".then(found => found.violations.map(each =>"
        " [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 160))]))",
        TAGS,
    )
    return [f"{rule}: {' | '.join(nodes)}" for rule, nodes in result]


def _shoot(page: Page, name: str) -> None:
    env.make_var_directory(SCREENSHOTS.parent)
    file = SCREENSHOTS / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file, full_page=True)


def is_web_idle() -> bool:
    """Return whether the web server runs no statement; pages that are closed may have sent requests."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        return bool(cursor.fetchone()[0] == 0)
