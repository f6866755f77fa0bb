"""Headers by which a proxy describes a client: they are removed from the requests of any other peer."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse

from monitor.core.log import OncePer
from monitor.core.networks import ip_of
from monitor.operations.web_server.client_address import peer_of
from monitor.operations.web_server.proxies import ON_THIS_HOST, UNIX, VARIABLE
from monitor.web.api.http.problems import Refused, of_refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from monitor.operations.web_server.proxies import Proxies

logger = logging.getLogger(__name__)

MISDIRECTED = 421
_PREFIX, _OTHERS = "HTTP_X_FORWARDED_", ("HTTP_FORWARDED", "HTTP_X_REAL_IP")


class ProxyMiddleware:
    """Believe ``GRIDCAST_PROXIES`` and no other peer what they say about a client.

    Behind TLS, a peer with such a header is most likely a proxy that is missing there: the request is refused
    with the line to add. A redirect to HTTPS would lead to the same proxy, without end; it would also do so
    where a named proxy does not say by which scheme the client connects. Without TLS the header is only
    ignored, and the log has the line: all clients of such a proxy count as one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._lines, self._silent_lines, self._scheme_lines = OncePer(), OncePer(), OncePer()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        proxies: Proxies = settings.GRIDCAST_PROXIES
        peer = peer_of(request)
        is_proxy = proxies.includes(peer)
        _remove_remote_user(request, peer, is_proxy=is_proxy)
        if is_proxy:
            self._log_silent(request, peer)
            return self._refuse_unknown_scheme(request, peer) or self.get_response(request)
        removed = _remove(request)
        if not removed:
            return self.get_response(request)
        if self._lines.is_due():
            self._log(peer, removed, proxies)
        if settings.SECURE_PROXY_SSL_HEADER:
            return _refuse(request, peer, proxies)
        return self.get_response(request)

    def _log_silent(self, request: HttpRequest, peer: str) -> None:
        """Log that a proxy names no client, though it says by which scheme the client connects."""
        is_silent = "HTTP_X_FORWARDED_PROTO" in request.META and "HTTP_X_FORWARDED_FOR" not in request.META
        if is_silent and self._silent_lines.is_due():
            logger.warning(
                "the proxy %s adds no X-Forwarded-For: its clients count as one until it does",
                peer or "at a Unix socket",
            )

    def _refuse_unknown_scheme(self, request: HttpRequest, peer: str) -> HttpResponse | None:
        """Return the answer to a request that would be redirected to HTTPS, and back by the same proxy."""
        is_exempt = any(re.search(each, request.path.lstrip("/")) for each in settings.SECURE_REDIRECT_EXEMPT)
        if not settings.SECURE_SSL_REDIRECT or "HTTP_X_FORWARDED_PROTO" in request.META or is_exempt:
            return None
        detail = (
            f"the request came from {peer or 'a Unix socket'} without X-Forwarded-Proto, and GRIDCAST_TLS=1:"
            " let the TLS proxy send this header (docs/operations.md, Proxies), or ask at its address"
        )
        if self._scheme_lines.is_due():
            logger.warning("%s", detail)
        return _misdirected(request, "unknown_scheme", f"{detail[:1].upper()}{detail[1:]}.")

    def _log(self, peer: str, removed: list[str], proxies: Proxies) -> None:
        consequence = (
            "its requests are refused" if settings.SECURE_PROXY_SSL_HEADER else "its clients count as one"
        )
        logger.warning(
            "%s from %s ignored: it is no proxy of ours. If it is, %s until you set %s=%s",
            ", ".join(removed)[:200],
            peer or "a Unix socket",
            consequence,
            VARIABLE,
            proxies.with_peer(peer),
        )


def _remove(request: HttpRequest) -> list[str]:
    """Remove what only a proxy may say, and return the names of the headers."""
    keys = [key for key in request.META if key.startswith(_PREFIX) or key in _OTHERS]
    for key in keys:
        del request.META[key]
    if keys:
        request.META["wsgi.url_scheme"] = "http"  # a web server may have believed X-Forwarded-Proto
        _forget_headers(request)
    return [key.removeprefix("HTTP_").replace("_", "-").title() for key in sorted(keys)]


def _remove_remote_user(request: HttpRequest, peer: str, *, is_proxy: bool) -> None:
    """Remove the header of a user, unless a proxy sends it that may; keep the name for the log."""
    configured = settings.GRIDCAST_REMOTE_USER
    if configured is None or (is_proxy and configured.proxies.includes(peer)):
        return
    name = request.META.pop(configured.key, None)
    if name is not None:
        request.unproven_remote_user = name  # type: ignore[attr-defined]
        _forget_headers(request)


def _forget_headers(request: HttpRequest) -> None:
    """Let Django read the headers again: an earlier middleware may have asked for one."""
    vars(request).pop("headers", None)


def _refuse(request: HttpRequest, peer: str, proxies: Proxies) -> HttpResponse:
    # What an operator has named is not told to strangers.
    line = str(proxies.with_peer(peer)) if proxies == ON_THIS_HOST else f"...,{ip_of(peer) or UNIX}"
    detail = (
        f"{peer or 'a Unix socket'} sent headers of a proxy, and is no proxy of gridcast. If it is yours,"
        f" set the variable of the web server: {VARIABLE}={line}"
    )
    return _misdirected(request, "unknown_proxy", detail)


def _misdirected(request: HttpRequest, code: str, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return of_refused(Refused(MISDIRECTED, code, detail))
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(f"{detail}\n", content_type="text/plain", status=MISDIRECTED, headers=headers)
