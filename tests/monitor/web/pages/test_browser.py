"""The pages in a browser: they render, fit the screen, and draw their charts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from monitor.models import Series
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import SCHEMES, FilledDepot, Visitors, fits_every_screen, interactive

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


def paths(depot: FilledDepot) -> list[str]:
    runs = [f"/runs/{run.pk}/" for run in (depot.failed, depot.passed)]
    of_series = ["/series/gather-main/", "/series/gather-main/?range=1y", "/series/circle-ring/"]
    reporters = ["/reporters/", "/reporters/home/", "/reporters/site1-login-with-a-long-name/"]
    holds = ["/holds/", "/holds/site/site2/"]
    causes = ["/failures/?range=90d", "/failures/causes/connection-refused/?range=90d"]
    failures = [*causes, *(f"/failures/breakdown/?by={by}&range=90d" for by in ("series", "path"))]
    return ["/", *of_series, *runs, "/alerts/", *failures, *holds, *reporters, "/login/", "/no-such-page"]


def test_every_page_fits_every_screen_without_console_errors(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/")  # one tab for all: each tab is a process that compiles all scripts
    for path in paths(depot):
        page.goto(visit.base + path)
        expect(page.locator("main h1").first).to_be_attached()
        fits_every_screen(page)
    assert [text for text in visit.complaints if "404" not in text] == []


def test_text_has_enough_contrast_in_light_and_dark(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for name in ("ink", "muted", "link", "s-passed", "s-failed", "s-timed_out", "s-broken"):
            assert contrast(page, name, "surface") >= 4.5, (scheme, name)
            assert contrast(page, name, "paper") >= 4.5, (scheme, name)


def contrast(page: Page, first: str, other: str) -> float:
    """Return the contrast of two custom properties as WCAG 2 defines it, 1 to 21."""
    shown = [_luminance(page, name) for name in (first, other)]
    return (max(shown) + 0.05) / (min(shown) + 0.05)


def _luminance(page: Page, name: str) -> float:
    text = page.evaluate(
        "name => { const e = document.body.appendChild(document.createElement('i'));"
        " e.style.color = `var(--${name})`; return getComputedStyle(e).color }",
        name,
    )
    channels = [int(part) / 255 for part in re.findall(r"\d+", text)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_charts_have_axes_with_units_and_every_kind_of_trace(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    history, rates = (interactive(page.locator(f"[data-chart={name}]")) for name in ("history", "rates"))
    expect(history.locator(".ytitle")).to_have_text("Duration (s)")
    expect(history.locator(".xtitle")).to_have_text("Time (UTC)")
    expect(rates.locator(".ytitle")).to_have_text("Rate (MB/s)")
    names = history.evaluate("element => element.data.map(trace => trace.name)")
    assert {"init", "queue_wait", "cleanup", "forecast", "interval", "total", "failed", "missed"} <= set(
        names
    )
    assert visit.complaints == []


@pytest.fixture
def changed(depot: FilledDepot) -> Series:
    """Gather passed twice with a hundred times the data."""
    gather = Series.objects.get(name="gather-main")
    gather.parameters = {**gather.parameters, "file_bytes": 100_000_000}
    gather.save()
    for seconds in (20, 10):
        builders.passed(gather, timezone.now() - timedelta(seconds=seconds), slowness=3.0)
    return gather


@pytest.mark.nightly
def test_no_line_crosses_a_boundary_and_its_label_says_what_changed(
    visitors: Visitors, changed: Series
) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    for name in ("history", "rates"):
        chart = interactive(page.locator(f"[data-chart={name}]"))
        expect(chart.locator(".annotation-text")).to_have_count(1)
        hover = chart.evaluate("element => element.layout.annotations.map(each => each.hovertext)")
        assert hover == ["file_bytes 1 MB → 100 MB"]
    lines = page.locator("[data-chart=rates]").evaluate("e => e.data.map(line => [line.name, line.x.length])")
    assert [length for name, length in lines if name == "transfer.site1-login"] == [10, 2]
    expect(page.get_by_role("heading", name="Configuration changes")).to_be_visible()
    assert visit.complaints == []


@pytest.mark.nightly
def test_hovering_over_a_failed_run_shows_its_reason(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/series/gather-main/")
    chart = interactive(page.locator("[data-chart=history]"))
    mark = chart.locator(".scatterlayer .trace .point").last
    expect(mark).to_be_visible()
    hovers = chart.evaluate("e => e.data.filter(t => t.name === 'failed').flatMap(t => t.text)")
    assert len(hovers) == 2
    assert all("Connection refused" in text for text in hovers)


@pytest.mark.nightly
def test_a_chart_follows_the_switch_between_light_and_dark(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/series/gather-main/")
    chart = interactive(page.locator("[data-chart=history]"))
    colour = "e => e.layout.font.color"
    before = chart.evaluate(colour)
    page.locator("summary", has_text="operator").click()
    page.get_by_role("button", name="Switch between light and dark").click()
    page.wait_for_function(
        "before => document.querySelector('[data-chart=history]').layout.font.color !== before", arg=before
    )
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
