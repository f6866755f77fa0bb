"""The pages in a real browser: they render, stay live, fit, and can be used without a mouse."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from monitor.alerts import evaluate
from monitor.ledger import heartbeats, transitions
from monitor.models import Alert, AlertRule, Hold, MaintenanceWindow, Run, Series, Site
from monitor.models.run import State
from tests.monitor.pages import builders
from tests.waiting import eventually

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
SCREENS = {"phone": (390, 844), "desk": (1280, 800)}
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
MINUTE = timedelta(minutes=1)
SOON = 10_000  # milliseconds

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


@pytest.fixture(scope="module")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    # Playwright's event loop runs in the tests' thread, in which Django then takes every query for a mistake,
    # and has other connections than without: those from before must not be among what a test cuts.
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
        connections.close_all()


@dataclass
class Visit:
    """Somebody who is logged in and opens pages."""

    context: BrowserContext
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        page = self.context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.base + path)
        return page

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)


@dataclass
class Visitors:
    browser: Browser
    base: str
    user: User
    open_contexts: list[BrowserContext] = field(default_factory=list)

    def come(self, screen: str = "desk", *, with_scripts: bool = True) -> Visit:
        width, height = SCREENS[screen]
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, java_script_enabled=with_scripts
        )
        self.open_contexts.append(context)
        session = Client()
        session.force_login(self.user)
        cookie = session.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": cookie, "url": self.base}])
        return Visit(context, self.base)


@pytest.fixture
def visitors(chromium: Browser, live_server: LiveServer) -> Iterator[Visitors]:
    found = Visitors(chromium, live_server.url, builders.user("operator", may_run=True))
    yield found
    for context in found.open_contexts:
        context.close()
    assert eventually(nobody_is_served)  # who still reads a table would be in the way of emptying it


def nobody_is_served() -> bool:
    """Whether the web has nothing to do in the depot. Pages that are closed may have asked for something."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        return bool(cursor.fetchone()[0] == 0)


@dataclass
class Watched:
    """A small grid with a past: Gather with two failures, one of them its last run; Circle without runs.

    Work goes on at a site, and more is planned. An alert is open, another one is over.
    """

    failed: Run
    passed: Run


@pytest.fixture
def watched(live_server: LiveServer) -> Watched:
    resources = builders.sites(4)
    gather = builders.gather("gather-main", resources)
    builders.circle("circle-ring", resources[:3])
    trouble = builders.Trouble(
        "transfer_data", "site2-login", "cannot connect to site2.example.org:22: Connection refused " * 3
    )
    until = timezone.now() - MINUTE / 2
    runs = builders.history(gather, 9, until=until, troubles={4: trouble, 8: trouble})
    builders.not_run(gather, until - MINUTE, State.MISSED, "no reporter took it within 120 s of its time")
    title = "new disks for all users' home directories " * 4
    here = MaintenanceWindow.objects.create(
        name="disks", title=title, schedule="* * * * *", duration_seconds=60
    )
    here.sites.set(Site.objects.filter(name__in=["site4"]))
    MaintenanceWindow.objects.create(name="network", schedule="0 8 * * tue", duration_seconds=14400)
    AlertRule.objects.create(name="every-failure", everything=True, condition="failures_in_row", threshold=1)
    evaluate.evaluate(timezone.now())
    made = Alert.objects.get()
    over = AlertRule.objects.create(name="over", condition="silent_seconds", threshold=60, enabled=False)
    Alert.objects.create(
        rule=over,
        series=gather,
        since=until,
        opened_at=until,
        closed_at=until,
        opened_by=runs[-1],
        text=made.text,
    )
    return Watched(failed=runs[-1], passed=runs[-2])


def paths(watched: Watched) -> list[str]:
    runs = [f"/runs/{run.pk}/" for run in (watched.failed, watched.passed)]
    of_series = ["/series/gather-main/", "/series/gather-main/?range=1y", "/series/circle-ring/"]
    return ["/", *of_series, *runs, "/alerts/", "/holds/", "/holds/site/site2/", "/login/", "/no-such-page"]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def test_every_page_fits_every_screen_without_a_complaint(visitors: Visitors, watched: Watched) -> None:
    visit = visitors.come()
    page = visit.open("/")  # one tab: a browser makes a process for each, and compiles all scripts in it
    for path in paths(watched):
        page.goto(visit.base + path)
        expect(page.locator("main h1").first).to_be_attached()
        for screen, (width, height) in SCREENS.items():
            page.set_viewport_size({"width": width, "height": height})
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert overflow(page) <= 0, (path, screen, scheme)
    assert [text for text in visit.complaints if "404" not in text] == []


def test_text_can_be_told_from_its_ground_in_light_and_dark(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for name in ("ink", "muted", "link", "s-passed", "s-failed", "s-timed_out", "s-broken"):
            assert contrast(page, name, "surface") >= 4.5, (scheme, name)
            assert contrast(page, name, "paper") >= 4.5, (scheme, name)


def contrast(page: Page, one: str, other: str) -> float:
    """The contrast of two custom colours as WCAG 2 defines it, 1 to 21."""
    found = [_luminance(page, name) for name in (one, other)]
    return (max(found) + 0.05) / (min(found) + 0.05)


def _luminance(page: Page, name: str) -> float:
    text = page.evaluate(
        "name => { const e = document.body.appendChild(document.createElement('i'));"
        " e.style.color = `var(--${name})`; return getComputedStyle(e).color }",
        name,
    )
    channels = [int(part) / 255 for part in re.findall(r"\d+", text)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_charts_have_axes_with_units_and_every_kind_of_mark(visitors: Visitors, watched: Watched) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    history, rates = page.locator("[data-chart=history]"), page.locator("[data-chart=rates]")
    expect(history.locator(".ytitle")).to_have_text("Duration (s)", timeout=SOON)
    expect(history.locator(".xtitle")).to_have_text("Time (UTC)")
    expect(rates.locator(".ytitle")).to_have_text("Rate (MB/s)")
    names = history.evaluate("element => element.data.map(trace => trace.name)")
    assert {"init", "queue_wait", "cleanup", "forecast", "interval", "total", "failed", "missed"} <= set(
        names
    )
    assert visit.complaints == []


@pytest.fixture
def changed(watched: Watched) -> Series:
    """Gather was given a hundred times the data, and passed twice more."""
    gather = Series.objects.get(name="gather-main")
    gather.parameters = {**gather.parameters, "file_bytes": 100_000_000}
    gather.save()
    for minutes in (4, 2):
        builders.passed(gather, timezone.now() + minutes * MINUTE, slowness=3.0)
    return gather


def test_no_line_is_drawn_over_a_boundary_which_says_what_changed(
    visitors: Visitors, changed: Series
) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    for name in ("history", "rates"):
        chart = page.locator(f"[data-chart={name}]")
        expect(chart.locator(".annotation-text")).to_have_count(1, timeout=SOON)
        hover = chart.evaluate("element => element.layout.annotations.map(each => each.hovertext)")
        assert hover == ["file_bytes 1 MB → 100 MB"]
    lines = page.locator("[data-chart=rates]").evaluate("e => e.data.map(line => [line.name, line.x.length])")
    assert [length for name, length in lines if name == "transfer.site1-login"] == [10, 2]
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    assert visit.complaints == []


def test_pointing_at_a_failed_run_tells_its_reason(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/series/gather-main/")
    mark = page.locator("[data-chart=history] .scatterlayer .trace .point").last
    expect(mark).to_be_visible(timeout=SOON)
    hovers = page.locator("[data-chart=history]").evaluate(
        "e => e.data.filter(t => t.name === 'failed').flatMap(t => t.text)"
    )
    assert len(hovers) == 2
    assert all("Connection refused" in text for text in hovers)


def test_a_chart_follows_the_choice_of_light_or_dark(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/series/gather-main/")
    chart = page.locator("[data-chart=history]")
    expect(chart.locator(".ytitle")).to_be_visible(timeout=SOON)
    colour = "e => e.layout.font.color"
    before = chart.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    page.wait_for_function(
        "before => document.querySelector('[data-chart=history]').layout.font.color !== before", arg=before
    )
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_overview_shows_a_new_run_by_itself(visitors: Visitors, watched: Watched) -> None:
    visit = visitors.come()
    page = visit.open("/")
    expect(page.get_by_text("Not working now")).to_be_visible()
    builders.passed(watched.failed.series, timezone.now())
    expect(page.get_by_text("Everything works")).to_be_visible(timeout=SOON)
    assert visit.complaints == []


def test_ages_count_on_without_news(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/")
    age = page.locator(".cell time").first
    before = age.text_content()
    expect(age).not_to_have_text(before or "", timeout=SOON)


def test_news_leave_the_reader_where_he_was(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come("phone").open("/")
    grid = page.locator("#grid-scroll")
    grid.evaluate("element => element.scrollTo(120, 0)")
    page.get_by_role("link", name="gather-main").last.focus()
    builders.passed(watched.failed.series, timezone.now())
    expect(page.get_by_text("Everything works")).to_be_visible(timeout=SOON)
    assert grid.evaluate("element => element.scrollLeft") == 120
    assert page.evaluate("document.activeElement.textContent") == "gather-main"


def test_a_chart_draws_a_new_run_by_itself(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/series/circle-ring/")
    expect(page.get_by_text("No run has ended in this range.")).to_be_visible()
    run = builders.passed(Series.objects.get(name="circle-ring"), timezone.now())
    expect(page.locator("[data-chart=history] .ytitle")).to_be_visible(timeout=SOON)
    expect(page.locator(f'a[href="/runs/{run.pk}/"]')).to_be_visible()


def test_run_now_shows_the_run_until_it_has_ended(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/series/gather-main/")
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("heading", name="Waits for its reporter")).to_be_visible(timeout=SOON)
    run = Run.objects.get(trigger="asked for by operator")
    transitions.move(Run.objects.all(), [run.pk], State.CLAIMED, cause="claimed")
    began: dict[str, Any] = {"stage": "compute", "started_at": timezone.now()}
    transitions.move(Run.objects.all(), [run.pk], State.RUNNING, cause="it began", **began)
    expect(page.get_by_role("heading", name="Running: compute")).to_be_visible(timeout=SOON)
    builders.delivered(builders.report(run.series, run.slot))
    expect(page.get_by_role("heading", name="Passed")).to_be_visible(timeout=SOON)


def test_a_series_is_held_and_resumed_without_javascript(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come("phone", with_scripts=False).open("/series/gather-main/")
    page.locator("summary", has_text="Hold").click()
    page.get_by_label("Reason").fill("disk <swap>")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".hold")).to_contain_text("paused by operator")
    expect(page.locator(".hold q")).to_have_text("disk <swap>")
    assert overflow(page) <= 0
    page.locator("summary", has_text="Resume").click()
    page.get_by_label("Reason").fill("new disks")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".hold")).to_have_count(0)
    held = Hold.objects.get()
    assert (held.ended_by, held.ended_why) == ("operator", "new disks")


def test_pages_can_be_read_without_javascript(visitors: Visitors, watched: Watched) -> None:
    visit = visitors.come(with_scripts=False)
    overview = visit.open("/")
    expect(overview.locator(".cell", has_text="failed here")).to_be_visible()
    overview.get_by_role("link", name="Alerts 1 open").click()
    expect(overview.get_by_text("A run did not pass: ").first).to_be_visible()
    series = visit.open("/series/gather-main/")
    expect(series.locator("noscript p")).to_be_visible()
    expect(series.get_by_role("cell", name="failed in transfer_data").first).to_be_visible()
    series.get_by_role("button", name="Run now").click()
    expect(series.get_by_role("heading", name="Waits for its reporter")).to_be_visible()


def test_everything_can_be_reached_by_keyboard_and_the_focus_is_seen(
    visitors: Visitors, watched: Watched
) -> None:
    page = visitors.come().open("/")
    reached, outlined = [], []
    for _ in range(40):
        page.keyboard.press("Tab")
        where, outline = page.evaluate(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.getAttribute('href') ?? e.id ?? e.textContent, s.outlineStyle + s.outlineWidth] }"
        )
        reached.append(where)
        outlined.append(outline)
    assert reached[0] == "#content"
    assert {"/series/gather-main/", "grid-scroll", f"/runs/{watched.failed.pk}/"} <= set(reached)
    assert set(outlined[: reached.index("grid-scroll")]) == {"solid2px"}


def end_other_connections() -> None:
    """Cut every connection to this test's database but the test's own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_an_open_page_says_that_the_depot_is_away_and_goes_on_when_it_is_back(
    visitors: Visitors, watched: Watched, tmp_path: Path
) -> None:
    heartbeats.record("beat", timezone.now() + timedelta(hours=1))
    page = visitors.come().open("/")
    place = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = str(tmp_path)  # the web server's next connections really fail
    try:
        end_other_connections()  # those that it keeps would go on for as long as the browser keeps its own
        expect(page.get_by_text("The depot does not answer.")).to_be_visible(timeout=SOON)
        expect(
            page.locator(".cell", has_text="failed here")
        ).to_be_visible()  # what was known stays on the page
    finally:
        connection.settings_dict["HOST"] = place
    expect(page.get_by_text("The depot does not answer.")).to_be_hidden(timeout=SOON)


def test_an_open_page_says_that_the_web_server_is_away(visitors: Visitors, watched: Watched) -> None:
    visit = visitors.come()
    page = visit.open("/")
    visit.context.set_offline(True)
    expect(page.get_by_text("The web server does not answer.")).to_be_visible(timeout=SOON)
    visit.context.set_offline(False)
    expect(page.get_by_text("The web server does not answer.")).to_be_hidden(timeout=SOON)


def test_a_tab_that_nobody_sees_asks_for_nothing(visitors: Visitors, watched: Watched) -> None:
    page = visitors.come().open("/")
    is_hidden = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s})"
    page.evaluate(is_hidden % "true")
    prevented = page.evaluate(
        """() => {
            const prevented = [];
            document.addEventListener("htmx:beforeRequest", event => prevented.push(event.defaultPrevented));
            document.body.dispatchEvent(new Event("back"));
            return prevented;
        }"""
    )
    assert prevented == [True]
    page.evaluate(is_hidden % "false")
    with page.expect_request("**/?seen=*", timeout=SOON):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
