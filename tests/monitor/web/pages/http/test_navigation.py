"""The navigation: which entries a user sees, and which of them is the current one."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client

from monitor.web import pages
from monitor.web.pages.http.navigation import ACCOUNT, SECTIONS, TOOLS, NavigationEntry, navigation
from tests.monitor.web.pages import builders

FIRST = NavigationEntry("Failures", "Causes", "failures", pages=("failure",), permits=lambda user: True)
SECOND = NavigationEntry("Failures", "Signatures", "signatures", permits=lambda user: user.is_authenticated)


def test_entries_are_in_the_order_of_their_section_whatever_page_declares_them_first(reader: User) -> None:
    shown = navigation([SECOND, FIRST], reader, "signatures")
    (section,) = shown.sections
    assert (section.label, section.url, section.current) == ("Failures", "/failures/", "true")
    assert [(link.label, link.current) for link in section.links] == [("Causes", ""), ("Signatures", "page")]
    assert shown.open_section == section


def test_a_page_of_one_object_belongs_to_its_entry(reader: User) -> None:
    (section,) = navigation([FIRST, SECOND], reader, "failure").sections
    assert [link.current for link in section.links] == ["true", ""]


def test_an_entry_is_hidden_from_users_who_may_not_open_it() -> None:
    (section,) = navigation([FIRST, SECOND], AnonymousUser(), None).sections
    assert [link.label for link in section.links] == ["Causes"]
    assert navigation([SECOND], AnonymousUser(), None).sections == []


def test_each_entry_of_a_page_has_a_place() -> None:
    places = {(each.label, label) for each in (*SECTIONS, ACCOUNT, TOOLS) for label in each.entries}
    declared = [(entry.section, entry.label) for entry in pages.entries()]
    assert set(declared) <= places
    assert len(declared) == len(set(declared))


@pytest.mark.django_db
def test_each_entry_leads_to_a_page_that_marks_itself() -> None:
    browser = Client()
    browser.force_login(builders.user("chief", is_superuser=True))
    for entry in pages.entries():
        if entry.url == "public":  # readers without an account see no navigation
            continue
        shown = navigation([entry], User.objects.get(), None)
        for section in filter(None, [*shown.sections, shown.account, shown.tools]):
            (link,) = section.links
            text = browser.get(link.url).content.decode()
            assert re.search(rf'href="{link.url}" aria-current="page">{entry.label}', text), entry


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("posted", "cookie"),
    [
        ({"zone": "Europe/Berlin"}, "Europe/Berlin"),
        ({"zone": ["UTC", "Asia/Tokyo"]}, "Asia/Tokyo"),  # a button, and a typed zone
        ({"zone": ["UTC", ""]}, "UTC"),
        ({"zone": "Mars/Olympus"}, None),
    ],
)
def test_a_reader_chooses_a_time_zone(posted: dict[str, object], cookie: str | None) -> None:
    browser = Client()
    browser.force_login(builders.user())
    answer = browser.post("/account/time-zone/", {**posted, "next": "/alerts/"}, follow=True)
    assert answer.redirect_chain == [("/alerts/", 302)]
    assert ("Not changed: time zone" in answer.content.decode()) == (cookie is None)
    assert (browser.cookies["timezone"].value if cookie else browser.cookies.get("timezone")) == cookie


@pytest.mark.django_db
def test_the_choice_of_a_zone_does_not_lead_to_another_host() -> None:
    browser = Client()
    browser.force_login(builders.user())
    answer = browser.post("/account/time-zone/", {"zone": "UTC", "next": "https://evil.example.org/"})
    assert answer.headers["Location"] == "/"
