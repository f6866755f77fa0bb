"""The address of the client that sent a request: for limits, the log, the audit record and allowed hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.operations.web_server.proxies import Proxies


def client_address(request: HttpRequest) -> str:
    """Return the address of the client, as our proxies name it; empty for a client at a Unix socket."""
    proxies: Proxies = settings.GRIDCAST_PROXIES
    return proxies.client_of(peer_of(request), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def peer_of(request: HttpRequest) -> str:
    """Return the address at the other end of the connection; empty at a Unix socket."""
    return str(request.META.get("REMOTE_ADDR", ""))
