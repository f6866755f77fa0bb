"""The Django app of the accounts: it has no models, but checks, receivers and pages of the admin site."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class AccountsConfig(AppConfig):
    name = "monitor.web.accounts"

    def ready(self) -> None:
        from monitor.web.accounts import (  # noqa: PLC0415 - register the checks
            account_checks,  # noqa: F401
            events,
            factor_changes,
            identities,
            settings_checks,  # noqa: F401
        )

        events.connect()
        factor_changes.connect()
        pre_delete.connect(identities.end_acts, sender="monitor.Identity")
