"""The destination of a webhook: its URL in parts. ``monitor.core.egress`` checks its addresses."""

from __future__ import annotations

from monitor.core.egress.errors import TargetRefused
from monitor.core.egress.target import EgressTarget, PasswordInUrl, parse_target

HIDDEN = "…"  # begins what pages and API show instead of a path


class InvalidUrl(Exception):
    pass


def parse(url: str) -> EgressTarget:
    """Return *url* in parts.

    Raises:
        InvalidUrl: it is no http or https URL, or contains a password.
    """
    if f"/{HIDDEN}" in url:
        raise InvalidUrl("its path is hidden from you: enter the whole URL")
    try:
        return parse_target(url, "https://hooks.example.org/gridcast")
    except PasswordInUrl as error:
        raise InvalidUrl(f"{error}; use secret_variable instead") from None
    except TargetRefused as error:
        raise InvalidUrl(str(error)) from None
