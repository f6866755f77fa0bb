"""The errors of logins by the identity provider; ``monitor.web.accounts.provider`` has their tree."""

from __future__ import annotations

from http import HTTPStatus
from typing import ClassVar

BUSY_SECONDS = 5  # after which a visitor may try again


class ProviderFault(Exception):
    """A login by the provider cannot go on. Foreign text in the message is clipped.

    Attributes:
        status: of the answer to the browser.
        reason: the paragraph of the page that explains it.
    """

    status: ClassVar[HTTPStatus]
    reason: ClassVar[str]


class ProviderUnreachable(ProviderFault):
    status, reason = HTTPStatus.BAD_GATEWAY, "provider_unreachable"


class ProviderUnusable(ProviderFault):
    status, reason = HTTPStatus.BAD_GATEWAY, "provider_unusable"


class ProviderBusy(ProviderFault):
    status, reason = HTTPStatus.SERVICE_UNAVAILABLE, "provider_busy"


class LoginRefused(ProviderFault):
    status, reason = HTTPStatus.UNAUTHORIZED, "provider_failed"
