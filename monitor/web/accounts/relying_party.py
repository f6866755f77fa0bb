"""The host name and the origin that passkeys belong to, and why there may be none."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_DEFAULT_PORTS = {"http": 80, "https": 443}


class PasskeysUnavailable(Exception):
    """Passkeys are not offered for this request; the message says why, and what to do."""


@dataclass(frozen=True)
class RelyingParty:
    """Passkeys are made for *host*, and used on pages of *origin* only."""

    host: str
    origin: str

    @property
    def is_local(self) -> bool:
        """Whether browsers take the host for their own: they then need no HTTPS."""
        return self.host == "localhost" or self.host.endswith(".localhost")

    @property
    def is_address(self) -> bool:
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True


def relying_party(request: HttpRequest) -> RelyingParty:
    """Return that of ``GRIDCAST_URL``; where it is unset, the origin of *request* at localhost.

    Raises:
        PasskeysUnavailable: browsers would refuse passkeys, or *request* is for another origin.
    """
    requested = _of_url(f"{request.scheme}://{request.get_host()}")
    if settings.GRIDCAST_URL:
        configured = _of_url(settings.GRIDCAST_URL)
        if configured.is_address:
            raise PasskeysUnavailable(
                f"Passkeys belong to a host name, but GRIDCAST_URL names the address {configured.host}."
            )
        if not configured.origin.startswith("https:") and not configured.is_local:
            raise PasskeysUnavailable(
                f"Passkeys need HTTPS, but GRIDCAST_URL is {configured.origin} without it."
            )
        if requested != configured:
            raise PasskeysUnavailable(f"Passkeys work at {configured.origin} only: open gridcast there.")
        return configured
    if requested.is_local:
        return requested
    if requested.is_address and ipaddress.ip_address(requested.host).is_loopback:
        raise PasskeysUnavailable("Passkeys belong to a host name: open gridcast at localhost.")
    raise PasskeysUnavailable("Passkeys need the variable GRIDCAST_URL, which an administrator can set.")


def _of_url(url: str) -> RelyingParty:
    """Return the host and the origin of *url* as browsers write them: in lower case, without a usual port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = "" if parts.port in {None, _DEFAULT_PORTS.get(parts.scheme)} else f":{parts.port}"
    shown = f"[{host}]" if ":" in host else host
    return RelyingParty(host, f"{parts.scheme}://{shown}{port}")
