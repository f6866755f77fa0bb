"""The controls of the pages in a browser: forms, menus and keys, also without scripts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from playwright.sync_api import expect

from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Hold, Series
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import FilledDepot, Visitors, fits_every_screen, overflow

MINUTE = timedelta(minutes=1)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


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
    page.get_by_role("button", name="Define signature").click()
    assert page.get_by_label("Category").evaluate("field => field.validity.valueMissing")
    page.get_by_label("Category").select_option("resource")
    page.get_by_label("Patterns").fill("(broken")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_text("not a regular expression of RE2")).to_be_visible()
    fits_every_screen(page)
    page.get_by_label("Patterns").fill("frobnicator|Connection refused")
    page.get_by_role("button", name="Define signature").click()
    page.get_by_label("Save although it matches runs of other causes").check()
    fits_every_screen(page)
    page.get_by_role("button", name="Define signature").click()
    expect(page.get_by_text("added. Failed runs are judged again.")).to_be_visible()
    expect(page.locator("#changes-title + .scroll")).to_contain_text("operator")
    assert [text for text in visit.complaints if "409" not in text] == []


@pytest.mark.nightly
def test_forms_of_settings_fit_every_screen_and_show_the_next_runs(
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
    expect(page.locator(".slots time")).to_have_count(5)
    page.get_by_label("Limit").fill("soon")
    page.get_by_role("button", name="Save").first.press("Enter")
    page.get_by_role("link", name="Limit").press("Enter")
    expect(page.locator("#field-limit-seconds:target")).to_have_attribute("aria-invalid", "true")
    fits_every_screen(page)
    assert [text for text in visit.complaints if "409" not in text] == []


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
