"""Requests of the agent to its server: HTTPS only, verified, bounded, and never redirected.

Errors::

    ServerError            the message names the URL, the proxy, what came back and what to do
    |-- ServerUnavailable  temporary: no answer, or one that asks to try again
    `-- ServerRefused      an answer that says no; the code tells which
"""

from __future__ import annotations

import os
import re
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from reporters import https
from reporters.connections import HostAndPort, HttpProxy, is_host
from reporters.fields import Unfit, parse_object, shown
from reporters.remote.errors import UsageFault

REQUEST_SECONDS = 60.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024  # an assignment of 4 MiB, as text in JSON
_MAX_PROBLEM_BYTES = 65536
_MAX_RETRY_SECONDS = 3600.0
_MAX_DETAIL_CHARACTERS = 400
_TEMPORARY = (408, 425, 429)  # and all from 500 on
_LOOPBACK = re.compile(r"localhost|::1|127(\.\d{1,3}){3}", re.ASCII)
_PORTS = {"https": 443, "http": 80}
_PROXY_PORT = 3128


class ServerError(Exception):
    """The base class of the errors of a request."""


class ServerUnavailable(ServerError):
    """There was no answer, or one that asks to try again.

    *retry_after_seconds* is how long the server asks to wait.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ServerRefused(ServerError):
    """The server says no. *code* is stable; *fields* are those of the problem."""

    def __init__(self, message: str, status: int, code: str, fields: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status, self.code, self.fields = status, code, fields


@dataclass(frozen=True)
class ServerUrl:
    """The URL of a server, as in the browser: *path* is empty or begins with a slash and ends without."""

    scheme: str
    server: HostAndPort
    path: str = ""

    def __str__(self) -> str:
        is_default = self.server.port == _PORTS[self.scheme]
        address = self.server.address
        return f"{self.scheme}://{address.rpartition(':')[0] if is_default else address}{self.path}"


@dataclass(frozen=True)
class Answer:
    """An answer with a status of 2xx. *seconds* is the duration of the request."""

    status: int
    body: bytes
    url: str = field(default="", repr=False)

    def document(self) -> dict[str, Any]:
        """Return the JSON object in the body. Raises ServerUnavailable if there is none."""
        try:
            return parse_object(self.body, max_bytes=MAX_ANSWER_BYTES)
        except Unfit as error:
            raise ServerUnavailable(
                f"{self.url}: the answer is no answer of gridcast: {error}; check that the URL is that of the"
                " server, and that no proxy answers in its place"
            ) from None


def parse_url(text: str) -> ServerUrl:
    """Return the server at the URL *text*.

    Raises:
        UsageFault: it is no URL of a server, or one without TLS that is not on this host.
    """
    try:
        parts = urllib.parse.urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageFault(f"the URL {shown(text)} is invalid: {error}") from None
    if parts.scheme not in _PORTS or not is_host(host):
        raise UsageFault(f"expected a URL such as https://grid.example.org, got {shown(text)}")
    if parts.username or parts.query or parts.fragment:
        raise UsageFault(f"expected a URL without user, query and fragment, got {shown(text)}")
    if parts.scheme == "http" and not _LOOPBACK.fullmatch(host):
        raise UsageFault(
            f"{text}: refused: without TLS anyone on the way could read and change the traffic; "
            "give the server's https:// URL"
        )
    return ServerUrl(parts.scheme, HostAndPort(host, port or _PORTS[parts.scheme]), parts.path.rstrip("/"))


def parse_proxy(text: str) -> HttpProxy:
    """Return the HTTP proxy at the URL *text*, such as ``http://user:password@proxy.example.org:3128``.

    Raises:
        UsageFault: it is no URL of an HTTP proxy.
    """
    try:
        parts = urllib.parse.urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageFault(f"--proxy or https_proxy: the URL of the proxy is invalid: {error}") from None
    if parts.scheme != "http" or not is_host(host):  # the URL may have a password: it is not shown
        raise UsageFault(
            "--proxy or https_proxy: expected a URL such as http://proxy.example.org:3128; "
            "the way to the proxy itself is plain HTTP, and carries TLS to the server"
        )
    user, password = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
    return HttpProxy(HostAndPort(host, port or _PROXY_PORT), user, password)


def proxy_for(url: ServerUrl, chosen: str, environment: Mapping[str, str] | None = None) -> HttpProxy | None:
    """Return the proxy for requests to *url*: the URL *chosen*, else that of the environment.

    ``none`` stands for no proxy. The variables are those of other programs: ``https_proxy`` and ``no_proxy``,
    also in upper case. Loopback addresses are reached directly.

    Raises:
        UsageFault: the URL of the proxy is invalid.
    """
    if chosen:
        return None if chosen == "none" else parse_proxy(chosen)
    variables = os.environ if environment is None else environment
    proxy, exceptions = (
        variables.get(name) or variables.get(name.upper()) or "" for name in ("https_proxy", "no_proxy")
    )
    if not proxy or url.scheme == "http":
        return None
    import urllib.request  # noqa: PLC0415  # a megabyte of memory, for agents behind a proxy only

    bypasses = urllib.request.proxy_bypass_environment(url.server.address, {"no": exceptions})  # type: ignore[attr-defined]
    return None if bypasses else parse_proxy(proxy)


class ServerClient:
    """Sends requests to the server at *url*. *ca_file* is the bundle of authorities; empty: the system's.

    Raises:
        UsageFault: the bundle cannot be used.
    """

    def __init__(self, url: ServerUrl, *, ca_file: str = "", proxy: HttpProxy | None = None) -> None:
        self.url, self._proxy, self._ca_file = url, proxy, ca_file
        self._context: ssl.SSLContext | None = None
        directory = "" if ca_file else _authorities()
        self._has_all_authorities = not directory
        if url.scheme == "https":
            try:
                self._context = https.tls_context(
                    ca_file=ca_file, ca_directory=directory, certificate_file=""
                )
            except https.Unreachable as error:
                raise UsageFault(f"--ca-file: {error}") from None

    def post(
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_seconds: float = REQUEST_SECONDS,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Send *body* to *path* of the API; return the answer.

        Raises:
            ServerError: there is no answer of status 2xx; the subclass tells whether to try again.
        """
        target = f"{self.url.path}/api/v1/reporters/{path}"
        what = self._what(target)
        limit = https.Limit(time.monotonic() + timeout_seconds)
        every = {"Accept": "application/json", "User-Agent": "gridcast-reporter", "Connection": "close"}
        try:
            with https.request(
                self.url.server,
                "POST",
                target,
                {**every, **headers},
                self._context,
                limit,
                body=body,
                proxy=self._proxy,
                redirects=1,
            ) as response:
                if response.is_success:
                    return Answer(response.status, response.body(max_answer_bytes), what)
                problem = _problem(response)
                retry_after = _retry_after(response.header("Retry-After"))
        except https.HttpsError as error:
            if "certificate" in str(error) and self._add_authorities():  # nothing has been sent
                return self.post(
                    path, body, headers, timeout_seconds=timeout_seconds, max_answer_bytes=max_answer_bytes
                )
            raise ServerUnavailable(f"{what}: {_reason(error, timeout_seconds)}{self._hint(error)}") from None
        raise _refusal(what, response.status, problem, retry_after)

    def _add_authorities(self) -> bool:
        """Trust also the authorities that the system has in one file; return whether they are new."""
        if self._context is None or self._has_all_authorities:
            return False
        self._has_all_authorities = True
        self._context.load_default_certs()
        return True

    def _what(self, target: str) -> str:
        way = "" if self._proxy is None else f" through the proxy {self._proxy.server.address}"
        return f"{self.url.scheme}://{self.url.server.address}{target}{way}"

    def _hint(self, error: https.HttpsError) -> str:
        text = str(error)
        if "certificate" in text and not self._ca_file:
            return "; if your site or the server has its own authority, name its certificates with --ca-file"
        if "certificate" in text:
            return f"; check that {self._ca_file} has the certificate of the server's authority"
        if isinstance(error, https.RefusedRedirect):
            return ": enrol with the URL at which the server itself answers"
        if "the proxy" in text or (isinstance(error, https.Unreachable) and self._proxy is not None):
            return "; check --proxy or https_proxy, with user and password if the proxy asks for them"
        if isinstance(error, https.Unreachable):
            return "; if this host reaches the web through a proxy only, name it with --proxy or https_proxy"
        return ""


def _authorities() -> str:
    """Return the directory of the system's authorities, empty if there is none.

    Of a directory, OpenSSL reads the certificate that it needs. Of a file it reads all: a megabyte of memory.
    """
    return ssl.get_default_verify_paths().capath or ""


def _refusal(what: str, status: int, problem: Mapping[str, Any], retry_after: float | None) -> ServerError:
    detail = problem.get("detail")
    text = f"{what}: {status}" + (f": {_one_line(detail)}" if isinstance(detail, str) else "")
    if status in _TEMPORARY or status >= 500:
        return ServerUnavailable(text, retry_after)
    code = problem.get("code")
    return ServerRefused(text, status, code if isinstance(code, str) else "", problem)


def _one_line(detail: str) -> str:
    """Return *detail*, which any server may have written, printable and cut to a limited length."""
    text = "".join(character if character.isprintable() else " " for character in detail)
    return text if len(text) <= _MAX_DETAIL_CHARACTERS else f"{text[:_MAX_DETAIL_CHARACTERS]}..."


def _reason(error: https.HttpsError, timeout_seconds: float) -> str:
    if isinstance(error, https.RequestTimedOut):
        return f"no whole answer within {timeout_seconds:g} s"
    return str(error)


def _problem(response: https.HttpsResponse) -> dict[str, Any]:
    """Return the fields of the problem in *response*; none if a proxy or another server answers."""
    try:
        return parse_object(response.body(_MAX_PROBLEM_BYTES), max_bytes=_MAX_PROBLEM_BYTES)
    except (Unfit, https.TooLarge):
        return {}


def _retry_after(text: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, at most an hour; None if it has none."""
    if text.isascii() and text.isdigit():
        return min(float(text), _MAX_RETRY_SECONDS)
    if not text:
        return None
    import email.utils  # noqa: PLC0415  # for the rare server that gives a date

    try:
        at = email.utils.parsedate_to_datetime(text)
        wait = (at - datetime.now(timezone.utc)).total_seconds()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return min(max(wait, 0.0), _MAX_RETRY_SECONDS)
