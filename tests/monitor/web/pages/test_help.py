"""Help explains every state, and shows every guide; the account page names the channels of alerts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.depot.series.staleness import Staleness
from monitor.models import AlertRule
from monitor.models.run import State
from monitor.web.pages.http.glossary import FRESHNESS, RUN_STATES, TERMS
from monitor.web.pages.http.guides import guide_files, guide_titles, render, render_guide

ROOT = Path(__file__).resolve().parents[4]


def test_every_state_is_explained() -> None:
    assert {*RUN_STATES} == {*State}
    assert {*FRESHNESS} == {*Staleness}


def test_help_has_every_term_and_guide(client: Client) -> None:
    page = client.get("/help/").content.decode()
    assert all(f'href="/help/guides/{name}/"' in page for name in guide_titles())
    assert page.count("<dt>") >= len(RUN_STATES) + len(FRESHNESS) + sum(map(len, TERMS.values()))
    shown = client.get("/help/guides/availability/").content.decode()
    assert "<h1>Availability</h1>" in shown
    assert "reliability  = up" in shown
    assert client.get("/help/guides/no-such-guide/").status_code == 404
    assert client.get("/help/files/grid.schema.json").headers["Content-Type"] == "application/json"
    assert client.get("/help/files/../pyproject.toml").status_code == 404


def test_every_link_of_a_guide_leads_to_a_heading_a_file_or_another_host() -> None:
    html = {name: render_guide(name).html for name in guide_titles()}
    broken = []
    for name, text in html.items():
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            path, _, anchor = address.partition("#")
            target = path.removeprefix("/help/guides/").rstrip("/") or name
            is_heading = target in html and (not anchor or f'id="{anchor}"' in html[target])
            is_file = path.removeprefix("/help/files/") in guide_files()
            if not (is_heading or is_file or address.startswith("https://")):
                broken.append(f"{name}: {address}")
    assert not broken


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_of_a_document_beside_the_guides_leads_to_a_file_and_a_heading(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    broken = []
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        file = ROOT / (path or document)
        if not file.exists() or (
            anchor and f'id="{anchor}"' not in render("", file.read_text(encoding="utf-8")).html
        ):
            broken.append(f"{path}#{anchor}")
    assert not broken


def test_html_and_scripts_in_the_source_of_a_guide_are_shown_as_text() -> None:
    guide = render("Title", "## A `b`\n\n## A b\n\n<b>x</b> [y](javascript:z) [in](../Makefile)\n")
    assert guide.sections == [("a-b", "A b"), ("a-b-1", "A b")]
    assert "<b>" not in guide.html
    assert "javascript:" not in guide.html.replace("[y](javascript:z)", "")
    assert "<a" not in guide.html


def test_the_account_page_names_the_channels_of_rules_but_no_secret_addresses(
    client: Client, reader: User
) -> None:
    User.objects.filter(pk=reader.pk).update(email="ada@example.org")
    secret = {"kind": "webhook", "url": "https://chat.example.org/secret"}
    mailed = [secret, {"kind": "email", "to": ["ada@example.org"]}]
    rule = {"everything": True, "condition": "failures_in_row", "threshold": 3}
    AlertRule.objects.create(name="three-failures", notify=mailed, **rule)
    AlertRule.objects.create(name="not-enabled", notify=[{"kind": "log"}], enabled=False, **rule)
    page = client.get("/account/").content.decode()
    assert all(part in page for part in ("three-failures", "email, webhook", "mailed to you"))
    assert "secret" not in page.replace("GRIDCAST_SECRET", "")
    assert "not-enabled" not in page
