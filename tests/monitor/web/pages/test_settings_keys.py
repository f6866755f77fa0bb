"""The pages of webhooks and ping keys under settings, and the index."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client, override_settings

from monitor.analysis.webhooks.signature import secrets_in
from monitor.models import AuditEvent, PingKey, Series, Webhook
from monitor.models.role import UserRole
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid
from tests.monitor.web.pages.test_settings_series import fields_of, seen_of, sent

NEW = "/settings/webhooks/new/"
FORM: dict[str, Any] = {
    "name": "ops",
    "url": "https://hooks.example.org/key-in-path",
    "events": ["site.up", "run.ended"],
    "secret_variable": "GRIDCAST_WEBHOOK_OPS",
    "sites": ["site1"],
    "enabled": "on",
    "verb": "save",
}


@pytest.fixture
def operator(grid: Grid) -> Client:
    return builders.browser_of("operator", UserRole.OPERATOR)


@pytest.fixture
def backup(grid: Grid) -> Series:
    return builders.series("backup", {"host": grid.resources[:1]}, probe="reported", schedule="0 3 * * *")


def test_a_webhook_is_defined_with_a_secret_that_is_shown_once(operator: Client) -> None:
    page = sent(operator, NEW, 200, FORM, seen=seen_of(operator.get(NEW).content.decode()))
    secret = re.findall(r"whsec_[\w+/=]+", page)[0]
    assert len(secrets_in("V", {"V": secret})) == 1
    hook = Webhook.objects.get()
    assert (hook.events, hook.created_by, hook.sites.get().name) == (
        ["run.ended", "site.up"],
        "operator",
        "site1",
    )
    assert "whsec_" not in operator.get("/settings/webhooks/edit/ops/").content.decode()
    rotated = sent(operator, "/settings/webhooks/secret/ops/", 200, {})
    assert secret not in rotated
    assert "OLD_SECRET" in rotated
    record = str(list(AuditEvent.objects.values_list("changes", flat=True)))
    assert "https://hooks.example.org" in record
    assert "whsec_" not in record
    assert "key-in-path" not in record


def test_the_form_refuses_what_the_api_refuses_with_its_messages(operator: Client) -> None:
    broken = {"url": "ftp://x", "events": [], "secret_variable": "DATABASE_URL"}
    page = sent(operator, NEW, 409, FORM, **broken, seen=seen_of(operator.get(NEW).content.decode()))
    assert 'id="field-events-problem"' in page
    page = sent(operator, NEW, 409, {**FORM, "url": "ftp://x"}, seen=seen_of(page), secret_variable="X")
    assert "expected a URL such as https://hooks.example.org/gridcast, got &#x27;ftp://x&#x27;" in page
    assert "expected a name such as GRIDCAST_WEBHOOK_SECRET, got &#x27;X&#x27;" in page


def test_a_webhook_that_changed_meanwhile_is_not_replaced_unseen(operator: Client) -> None:
    form = {**FORM, "secret_variable": ""}
    sent(operator, NEW, 302, form, seen=seen_of(operator.get(NEW).content.decode()))
    path = "/settings/webhooks/edit/ops/"
    changed = {**fields_of(operator, path), "url": "https://other.example.org/", "verb": "save"}
    Webhook.objects.update(enabled=False)
    assert "enabled: true -&gt; false" in sent(operator, path, 409, changed)
    delete = "/settings/webhooks/delete/ops/"
    stale = changed["seen"][0]
    assert "was changed meanwhile" in sent(operator, delete, 409, {"seen": stale})
    sent(operator, delete, 302, {"seen": seen_of(operator.get(delete).content.decode())})
    assert not Webhook.objects.exists()


@override_settings(GRIDCAST_URL="https://grid.example.org")
def test_a_ping_key_is_shown_once_with_its_lines_and_revoked(operator: Client, backup: Series) -> None:
    path = "/settings/ping-keys/backup/"
    assert path in operator.get("/series/backup/").content.decode()
    assert path in operator.get("/settings/ping-keys/").content.decode()
    page = sent(operator, path, 200, {"name": "cron of backup1"})
    key = re.findall(r"gcping_[\w-]{30,}", page)[0]
    url = f"https://grid.example.org/api/v1/ping/{key}"
    assert f'0 3 * * * PROGRAM; curl -fsS -m 10 --retry 5 -o /dev/null "{url}/$??rid=$(hostname)' in page
    assert key not in operator.get(path).content.decode()
    assert Client().post(f"/api/v1/ping/{key}").status_code == 200
    operator.post(f"{path}{PingKey.objects.get().pk}/revoke/")
    assert PingKey.objects.get().revoked_by == "operator"
    assert Client().post(f"/api/v1/ping/{key}").status_code == 404


def test_a_series_that_a_reporter_runs_gets_no_ping_key(operator: Client, grid: Grid) -> None:
    assert "runs circle-ring" in sent(operator, "/settings/ping-keys/circle-ring/", 409, {"name": "x"})
    page = sent(operator, "/settings/ping-keys/circle-ring/", 409, {"name": "x" * 101})
    assert "at most 100 characters" in page


def test_the_index_lists_what_the_user_may_use(operator: Client, client: Client) -> None:
    def links(browser: Client) -> set[str]:
        return set(re.findall(r'href="/settings/([\w-]+)/"', browser.get("/settings/").content.decode()))

    assert links(client) == {"series", "suites", "alerts"}
    assert links(operator) == {"series", "suites", "alerts", "ping-keys", "webhooks"}
