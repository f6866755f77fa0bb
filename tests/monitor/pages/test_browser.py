"""The pages in a browser: they render, fit the screen, stay current, and work by keyboard."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Page, expect

from monitor.failures import own_signatures
from monitor.failures.classify_runs import classify_runs
from monitor.ledger import heartbeats, transitions
from monitor.models import Hold, Run, Series
from monitor.models.run import State
from tests.monitor.pages import builders
from tests.monitor.pages.chromium import CHROMIUM
from tests.monitor.pages.visits import SCHEMES, SCREENS, FilledDepot, Visitors, interactive, overflow

MINUTE = timedelta(minutes=1)

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


@pytest.fixture
def unnamed(depot: FilledDepot) -> None:
    """Three runs of Circle that failed by a hostile text without spaces, and an own signature at length."""
    circle, now, long = (
        Series.objects.get(name="circle-ring"),
        timezone.now(),
        "a-word-that-does-not-end" * 10,
    )
    for number in range(3):
        sent = builders.report(circle, now - number * MINUTE)
        text = f"<script>alert({number})</script> jammed the frobnicator {long}"
        builders.delivered(builders.failed(sent, "transfer_ring", "site2-login", text))
    classify_runs(now)
    values = {
        "title": long[:200],
        "category": "storage",
        "severity": "minor",
        "patterns": [f"{long} elsewhere"],
    }
    own_signatures.accept("endless-word", values, "chief", now)


def test_a_proposal_is_accepted_in_the_browser(visitors: Visitors, unnamed: None) -> None:
    visit = visitors.come()
    page = visit.open("/failures/signatures/")
    fits_every_screen(page)
    page.get_by_role("link", name="Review").click()
    expect(page.get_by_text("Names 3 of 3 runs of unknown cause")).to_be_visible()
    fits_every_screen(page)
    page.get_by_role("button", name="Accept").click()
    assert page.get_by_label("Category").evaluate("field => field.validity.valueMissing")
    page.get_by_label("Category").select_option("resource")
    page.get_by_label("Patterns").fill("(broken")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_text("not a regular expression of RE2")).to_be_visible()
    fits_every_screen(page)
    page.get_by_label("Patterns").fill("frobnicator|Connection refused")
    page.get_by_role("button", name="Accept").click()
    page.get_by_label("Save although it matches runs of other causes").check()
    fits_every_screen(page)
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("added. Failed runs are judged again.")).to_be_visible()
    expect(page.locator("#changes-title + .scroll")).to_contain_text("operator")
    assert [text for text in visit.complaints if "409" not in text] == []


@pytest.mark.nightly
def test_forms_of_settings_fit_every_screen_and_show_runs_in_local_time(
    visitors: Visitors, depot: FilledDepot
) -> None:
    rights = ("add_series", "change_series", "change_suite", "change_alertrule", "manage_webhooks")
    operator = User.objects.get(username="operator")
    operator.user_permissions.add(*Permission.objects.filter(codename__in=rights))
    visit = visitors.come()
    page = visit.open("/settings/")
    for path in (
        "series/", "series/new/", "series/retire/gather-main/", "suites/", "suites/edit/main/", "alerts/",
        "alerts/new/", "alerts/edit/every-failure/", "alerts/delete/every-failure/", "webhooks/",
        "webhooks/new/", "ping-keys/", "series/edit/gather-main/",
    ):  # fmt: skip
        page.goto(f"{visit.base}/settings/{path}")
        fits_every_screen(page)
    expect(page.locator("time[data-local]")).to_have_count(5)
    expect(page.locator("time[data-local]").first).not_to_be_empty()
    page.get_by_label("Limit").fill("soon")
    page.get_by_role("button", name="Save").first.press("Enter")
    page.get_by_role("link", name="Limit").press("Enter")
    expect(page.locator("#field-limit-seconds:target")).to_have_attribute("aria-invalid", "true")
    fits_every_screen(page)
    assert [text for text in visit.complaints if "409" not in text] == []


def fits_every_screen(page: Page) -> None:
    for screen, (width, height) in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert overflow(page) <= 0, (page.url, screen, scheme)


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


def test_an_open_overview_shows_a_new_run(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/")
    expect(page.get_by_text("Failing now")).to_be_visible()
    builders.passed(depot.failed.series, timezone.now())
    expect(page.get_by_text("All passing")).to_be_visible()
    assert visit.complaints == []


def test_ages_keep_counting_between_updates(visitors: Visitors, depot: FilledDepot) -> None:
    builders.passed(depot.failed.series, timezone.now())  # an age of seconds: minutes change too rarely
    page = visitors.come().open("/")
    ages = page.locator(".seen time").all_text_contents()
    page.wait_for_function(
        "ages => [...document.querySelectorAll('.seen time')].some("
        "time => time.textContent.includes(' s ago') && !ages.includes(time.textContent))",
        arg=ages,
        timeout=60_000,
    )


def test_a_reader_chooses_times_instead_of_ages(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    age = page.locator(".latest .age time")
    expect(age).to_have_text(re.compile(r"\d+ (s|min) ago"))
    moment = age.evaluate("time => new Date(time.dateTime).toISOString().slice(0, 16).replace('T', ' ')")
    page.locator("summary", has_text="Time zone").click()
    page.get_by_label("Times instead of ages").check()
    expect(age).to_have_text(f"{moment} UTC")
    page.reload()  # this browser keeps the choice
    expect(age).to_have_text(f"{moment} UTC")
    page.locator("summary", has_text="Time zone").click()
    page.get_by_label("Times instead of ages").uncheck()
    expect(age).to_have_text(re.compile(r"\d+ (s|min) ago"))
    assert visit.complaints == []


def test_an_update_keeps_scroll_position_focus_and_selection(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come("phone").open("/")
    grid = page.locator("#grid-scroll")
    grid.evaluate("element => element.scrollTo(120, 0)")
    page.get_by_role("link", name="gather-main").last.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.strokes'))")
    selected = page.evaluate("getSelection().toString()")
    builders.passed(depot.failed.series, timezone.now())
    expect(page.get_by_text("All passing")).to_be_visible()
    assert grid.evaluate("element => element.scrollLeft") == 120
    assert page.evaluate("document.activeElement.textContent") == "gather-main"
    assert "Last 20 runs" in selected
    assert page.evaluate("getSelection().toString()") == selected


def test_an_update_keeps_what_is_chosen_and_opened_and_announces_the_new_state(
    visitors: Visitors, depot: FilledDepot
) -> None:
    visit = visitors.come()
    page = visit.open("/series/gather-main/")
    announcement = page.locator("#announcement")
    page.get_by_label("Interval").select_option("day")
    page.locator("details.behind summary").first.click()
    with page.expect_response("**/series/gather-main/?*"):
        page.evaluate("document.body.dispatchEvent(new Event('back'))")
    expect(announcement).to_be_empty()  # the state is the same
    run = builders.passed(depot.failed.series, timezone.now())
    page.evaluate("document.body.dispatchEvent(new Event('back'))")
    expect(page.locator(f'a[href="/runs/{run.pk}/"]')).to_be_visible()
    expect(announcement).to_have_text("Last run of gather-main: passed")
    expect(page.get_by_label("Interval")).to_have_value("day")
    expect(page.locator("details.behind").first).to_have_attribute("open", "")
    assert visit.complaints == []


@pytest.mark.nightly
def test_keys_move_the_chart_and_an_update_keeps_the_zoom(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/series/gather-main/")
    chart = interactive(page.locator("[data-chart=history]"))
    shown = "element => element._fullLayout.xaxis.range.map((time) => Date.parse(time))"
    starts_at = "document.querySelector('[data-chart=history]')._fullLayout.xaxis.range[0]"
    whole = chart.evaluate(shown)
    chart.focus()
    page.keyboard.press("+")
    page.wait_for_function(f"start => Date.parse({starts_at}) > start", arg=whole[0])
    zoomed = chart.evaluate(shown)
    assert zoomed[1] < whole[1]
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"start => Date.parse({starts_at}) < start", arg=zoomed[0])
    moved = chart.evaluate(shown)
    runs = chart.evaluate("element => element.data.find((trace) => trace.name === 'total').x.length")
    builders.passed(Series.objects.get(name="gather-main"), timezone.now())
    page.evaluate("document.body.dispatchEvent(new Event('back'))")
    page.wait_for_function(
        "runs => document.querySelector('[data-chart=history]')"
        ".data.find((trace) => trace.name === 'total').x.length > runs",
        arg=runs,
    )
    assert chart.evaluate(shown) == moved


@pytest.mark.nightly
def test_an_open_chart_draws_a_new_run(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/series/circle-ring/")
    expect(page.get_by_text("No run has ended in this range.")).to_be_visible()
    run = builders.passed(Series.objects.get(name="circle-ring"), timezone.now())
    expect(page.locator("[data-chart=history] .drawn .total").first).to_be_attached()
    expect(page.locator(f'a[href="/runs/{run.pk}/"]')).to_be_visible()


def test_run_now_shows_the_run_until_it_ends(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come().open("/series/gather-main/")
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("heading", name="Waiting for the reporter")).to_be_visible()
    run = Run.objects.get(trigger__contains="operator")
    transitions.move(Run.objects.all(), [run.pk], State.CLAIMED, cause="claimed")
    began: dict[str, Any] = {"stage": "compute", "started_at": timezone.now()}
    transitions.move(Run.objects.all(), [run.pk], State.RUNNING, cause="it began", **began)
    expect(page.get_by_role("heading", name="Running: compute")).to_be_visible()
    builders.delivered(builders.report(run.series, run.slot))
    expect(page.get_by_role("heading", name="Passed", exact=True)).to_be_visible()


def test_a_series_is_held_and_resumed_without_javascript(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come("phone", with_scripts=False).open("/series/gather-main/")
    page.locator("summary", has_text="Pause").click()
    page.get_by_label("Reason").fill("disk <swap>")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".hold")).to_contain_text("paused by operator")
    expect(page.locator(".hold q")).to_have_text("disk <swap>")
    assert overflow(page) <= 0
    page.locator("summary", has_text="Resume").click()
    page.get_by_label("Reason").fill("new disks")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".hold")).to_have_count(0)
    hold = Hold.objects.get()
    assert (hold.ended_by, hold.ended_why) == ("operator", "new disks")


def test_pages_can_be_read_without_javascript(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come(with_scripts=False)
    overview = visit.open("/")
    expect(overview.locator(".cell", has_text="failed here")).to_be_visible()
    overview.get_by_role("link", name="Alerts 2 open").click()
    expect(overview.get_by_text("A run did not pass: ").first).to_be_visible()
    series = visit.open("/series/gather-main/")
    expect(series.locator("[data-chart=history] .y-title")).to_have_text("Duration (s)")
    expect(series.get_by_role("cell", name="failed in transfer_data").first).to_be_visible()
    series.get_by_role("button", name="Run now").click()
    expect(series.get_by_role("heading", name="Waiting for the reporter")).to_be_visible()


def test_every_control_is_reached_by_keyboard_with_a_visible_focus(
    visitors: Visitors, depot: FilledDepot
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
    assert {"/series/gather-main/", "grid-scroll", f"/runs/{depot.failed.pk}/"} <= set(reached)
    assert set(outlined[: reached.index("grid-scroll")]) == {"solid2px"}


def test_escape_and_a_click_outside_close_a_menu(visitors: Visitors) -> None:
    page = visitors.come("phone").open("/alerts/")
    menu = page.locator("details.all-sections")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.get_by_role("link", name="Alerts")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(menu.get_by_role("link", name="Alerts")).to_be_hidden()
    expect(menu.locator("summary")).to_be_focused()
    menu.locator("summary").click()
    page.mouse.click(380, 800)
    expect(menu.get_by_role("link", name="Alerts")).to_be_hidden()


def end_other_connections() -> None:
    """Terminate all connections to the test database except the own one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_an_open_page_shows_a_database_outage_until_it_is_over(
    visitors: Visitors, depot: FilledDepot, tmp_path: Path
) -> None:
    heartbeats.record("beat", timezone.now() + timedelta(hours=1))
    page = visitors.come().open("/")
    place = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = str(tmp_path)  # new connections of the web server fail
    try:
        end_other_connections()  # kept connections would last as long as those of the browser
        expect(page.locator("#banner", has_text="Database unreachable.")).to_be_visible()
        expect(page.locator(".cell", has_text="failed here")).to_be_visible()  # the page keeps its content
    finally:
        connection.settings_dict["HOST"] = place
    expect(page.locator("#banner", has_text="Database unreachable.")).to_be_hidden()


@pytest.mark.nightly
def test_an_open_page_shows_an_outage_of_the_web_server(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/")
    visit.context.set_offline(True)
    expect(page.locator("#banner", has_text="Web server unreachable.")).to_be_visible()
    visit.context.set_offline(False)
    expect(page.locator("#banner", has_text="Web server unreachable.")).to_be_hidden()


def test_a_hidden_tab_sends_no_requests(visitors: Visitors, depot: FilledDepot) -> None:
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
    with page.expect_request("**/?seen=*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_reporter_is_created_enrolled_and_revoked_without_scripts(visitors: Visitors) -> None:
    page = visitors.come("phone", with_scripts=False).open("/reporters/")
    page.get_by_text("New reporter").click()
    page.get_by_label("Name").fill("site3-login")
    page.get_by_label("Site").select_option("site3")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="site3-login")).to_be_visible()
    page.get_by_role("button", name="Enrolment code").click()
    expect(page.get_by_text("python3 gridcast-reporter.pyz enrol")).to_be_visible()
    assert overflow(page) <= 0
    page.get_by_text("Revoke", exact=True).click()
    page.get_by_role("button", name="Revoke the key of site3-login").click()
    expect(page.get_by_text("open enrolment codes are withdrawn")).to_be_visible()
