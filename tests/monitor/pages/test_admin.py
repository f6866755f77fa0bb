"""The administrators' pages."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from monitor.models import ApiToken, Forecast, Run
from tests.monitor.pages import builders
from tests.monitor.pages.conftest import Grid


@pytest.fixture
def administrator(db: None) -> Client:
    browser = Client()
    browser.force_login(builders.user("chief", is_staff=True, is_superuser=True))
    return browser


@pytest.mark.parametrize(
    "model",
    [model for model in admin.site._registry if model._meta.app_label == "monitor"],
    ids=lambda m: m.__name__,
)
def test_every_list_and_form_opens(grid: Grid, administrator: Client, now: datetime, model: type) -> None:
    builders.history(grid.circle, 4, until=now)
    ApiToken.objects.issue(builders.user("program"), "scheduler", ["read"])
    name = f"admin:monitor_{model.__name__.lower()}"
    assert administrator.get(reverse(f"{name}_changelist")).status_code == 200
    for one in model._default_manager.all()[:1]:  # type: ignore[attr-defined]
        assert administrator.get(reverse(f"{name}_change", args=[one.pk])).status_code == 200


@pytest.mark.parametrize("model", [Run, Forecast])
def test_what_was_measured_cannot_be_edited_or_made_up(
    grid: Grid, administrator: Client, model: type
) -> None:
    assert administrator.get(reverse(f"admin:monitor_{model.__name__.lower()}_add")).status_code == 403


def test_a_tokens_hash_is_not_shown(administrator: Client) -> None:
    ApiToken.objects.issue(builders.user("program"), "scheduler", ["read"])
    token = ApiToken.objects.get()
    text = administrator.get(reverse("admin:monitor_apitoken_change", args=[token.pk])).content.decode()
    assert token.sha256 not in text
