"""Open pages in a browser: they stay current, keep what the reader did, and show outages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from monitor.models import Run, Series
from monitor.models.run import State
from monitor.runs.ledger import transitions
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import FilledDepot, Visitors, interactive, pass_interval

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


def test_an_open_overview_shows_a_new_run(visitors: Visitors, depot: FilledDepot) -> None:
    visit = visitors.come()
    page = visit.open("/", with_clock=True)
    expect(page.get_by_text("Failing now")).to_be_visible()
    builders.passed(depot.failed.series, timezone.now())
    pass_interval(page)
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


def test_an_update_keeps_scroll_position_focus_and_selection(visitors: Visitors, depot: FilledDepot) -> None:
    page = visitors.come("phone").open("/", with_clock=True)
    grid = page.locator("#grid-scroll")
    grid.evaluate("element => element.scrollTo(120, 0)")
    page.get_by_role("link", name="gather-main").last.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.strokes'))")
    selected = page.evaluate("getSelection().toString()")
    builders.passed(depot.failed.series, timezone.now())
    pass_interval(page)
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
    page = visitors.come().open("/series/gather-main/", with_clock=True)
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("heading", name="Waiting for the reporter")).to_be_visible()
    run = Run.objects.get(trigger__contains="operator")
    transitions.move(Run.objects.all(), [run.pk], State.CLAIMED, cause="claimed")
    began: dict[str, Any] = {"stage": "compute", "started_at": timezone.now()}
    transitions.move(Run.objects.all(), [run.pk], State.RUNNING, cause="it began", **began)
    pass_interval(page)
    expect(page.get_by_role("heading", name="Running: compute")).to_be_visible()
    builders.delivered(builders.report(run.series, run.slot))
    pass_interval(page)
    expect(page.get_by_role("heading", name="Passed", exact=True)).to_be_visible()


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
    page = visitors.come().open("/", with_clock=True)
    place = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = str(tmp_path)  # new connections of the web server fail
    try:
        end_other_connections()  # kept connections would last as long as those of the browser
        pass_interval(page)
        expect(page.locator("#banner", has_text="Database unreachable.")).to_be_visible()
        expect(page.locator(".cell", has_text="failed here")).to_be_visible()  # the page keeps its content
    finally:
        connection.settings_dict["HOST"] = place
    pass_interval(page)
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
