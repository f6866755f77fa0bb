"""The proxy that the environment names for a target: ``https_proxy``, ``http_proxy``, ``no_proxy``."""

from __future__ import annotations

import base64
import http
import http.client
import socket
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote, urlsplit

from monitor.core.egress.deadline import TimedChannel
from monitor.core.egress.errors import TargetRefused, Unanswered
from monitor.core.egress.target import EgressTarget, parse_target


@dataclass(frozen=True)
class EgressProxy:
    """A proxy; *headers* authenticate us there."""

    target: EgressTarget
    headers: Mapping[str, str]


def proxy_of(target: EgressTarget) -> EgressProxy | None:
    """Return the proxy through which *target* is asked; None: no proxy.

    Raises:
        TargetRefused: the variable is no http URL.
    """
    url = urllib.request.getproxies().get(target.scheme, "")
    if not url or urllib.request.proxy_bypass(target.host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    credentials, _, authority = parts.netloc.rpartition("@")
    headers = {}
    if credentials:
        encoded = base64.b64encode(unquote(credentials).encode()).decode()
        headers["Proxy-Authorization"] = f"Basic {encoded}"
    try:
        return EgressProxy(parse_target(f"{parts.scheme}://{authority}"), headers)
    except TargetRefused as error:
        raise TargetRefused(f"{target.scheme}_proxy: {error}") from None


def open_tunnel(channel: TimedChannel, target: EgressTarget, headers: Mapping[str, str]) -> None:
    """Have the proxy at the other end of *channel* connect to *target*.

    Raises:
        Unanswered: it refuses.
    """
    host = f"[{target.host}]" if ":" in target.host else target.host
    authority = f"{host}:{target.port}"
    lines = [
        f"CONNECT {authority} HTTP/1.1",
        f"Host: {authority}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    channel.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii"))
    answer = http.client.HTTPResponse(cast("socket.socket", channel), method="CONNECT")
    answer.begin()
    if answer.status != http.HTTPStatus.OK:
        raise Unanswered(f"the proxy refuses to connect to {target.origin}: {answer.status}")
