"""Help explains every state, and shows every guide; the account page names the channels of alerts."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from monitor.env import ROOT
from monitor.models import AlertRule
from monitor.models.run import State
from monitor.pages.http.glossary import FRESHNESS, RUN_STATES, TERMS
from monitor.series.staleness import Staleness


def test_every_state_is_explained() -> None:
    assert {*RUN_STATES} == {*State}
    assert {*FRESHNESS} == {*Staleness}


def test_help_has_every_term_and_guide(client: Client) -> None:
    page = client.get("/help/").content.decode()
    guides = [file.stem for file in (ROOT / "docs").glob("*.md")]
    assert all(f'href="/help/guides/{name}/"' in page for name in guides)
    assert page.count("<dt>") >= len(RUN_STATES) + len(FRESHNESS) + sum(map(len, TERMS.values()))
    shown = client.get("/help/guides/availability/").content.decode()
    assert "<h1>Availability</h1>" in shown
    assert "reliability  = up" in shown
    assert client.get("/help/guides/no-such-guide/").status_code == 404


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
