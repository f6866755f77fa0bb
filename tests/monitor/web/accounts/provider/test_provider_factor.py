"""A login that had a second factor at the provider, by ``amr`` or ``acr``, needs none here."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider


@pytest.mark.parametrize(
    ("claims", "counts"),
    [
        ({}, False),
        ({"amr": ["pwd"]}, False),
        ({"amr": ["pwd", "mfa"]}, True),
        ({"amr": "mfa"}, True),
        ({"acr": "strong"}, True),
    ],
    ids=str,
)
def test_a_second_factor_at_the_provider_counts_by_its_claims(
    claims: dict[str, Any], counts: bool, browser: Client, op: OpenIdProvider, settings: Settings
) -> None:
    settings.GRIDCAST_SECOND_FACTOR_ROLES = frozenset({"viewer"})
    settings.GRIDCAST_SECOND_FACTOR_DAYS = 0
    settings.GRIDCAST_OIDC_SECOND_FACTOR_VALUES = frozenset({"mfa", "strong"})
    op.claims |= claims
    op.log_in(browser)
    assert (browser.get("/series/").status_code == 200) == counts
