"""The client of HTTP that goes out: one exchange, or a chain of redirects, within its bounds."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import cast

from monitor.core.clipping import printable
from monitor.core.egress.addresses import Resolve, check_addresses, resolve, resolve_within
from monitor.core.egress.bounds import EgressBounds
from monitor.core.egress.deadline import CallDeadline, TimedChannel
from monitor.core.egress.errors import AnswerTooLarge, EgressError, TargetRefused, Unanswered
from monitor.core.egress.proxy import EgressProxy, open_tunnel, proxy_of
from monitor.core.egress.target import EgressTarget

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class EgressAnswer:
    """What a server has answered; the names of *headers* are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@cache
def verified_context() -> ssl.SSLContext:
    """Return the context that verifies by the system's authorities; ``SSL_CERT_FILE`` names others."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class EgressClient:
    """Sends requests within *bounds*.

    Attributes:
        internal_hosts: hosts that may have internal addresses, as in ``check_addresses``.
        context: verifies the certificates of servers.
    """

    bounds: EgressBounds
    internal_hosts: Collection[str] | None = None
    resolve: Resolve = resolve
    context: Callable[[], ssl.SSLContext] = field(default=verified_context)

    def send(
        self, method: str, target: EgressTarget, headers: Mapping[str, str], content: bytes | None = None
    ) -> EgressAnswer:
        """Send a request; return the answer, of a GET that of the last redirect.

        Raises:
            TargetRefused, Unanswered, AnswerTooLarge: the message begins with the origin of the target.
        """
        deadline, at = CallDeadline(self.bounds.seconds), target
        for _ in range(self.bounds.redirects + 1):
            answer = self._exchange(deadline, method, at, headers, content)
            location = answer.headers.get("location")
            if (
                method != "GET"
                or not self.bounds.redirects
                or answer.status not in _REDIRECTS
                or not location
            ):
                return answer
            to = at.redirected(location)
            if self.bounds.is_one_origin and to.origin != target.origin:
                raise TargetRefused(f"{at.origin} redirects to {to.origin}, which is another server")
            at = to
        raise TargetRefused(f"{target.origin} redirects more than {self.bounds.redirects} times")

    def _exchange(
        self,
        deadline: CallDeadline,
        method: str,
        target: EgressTarget,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> EgressAnswer:
        try:
            proxy = proxy_of(target) if self.bounds.has_proxy else None
            with contextlib.closing(self._connected(deadline, target, proxy)) as channel:
                path = target.path
                if proxy is not None and target.scheme == "http":
                    path, headers = f"{target.origin}{target.path}", {**headers, **proxy.headers}
                connection = http.client.HTTPConnection(target.host, target.port)
                connection.sock = cast("socket.socket", TimedChannel(channel, deadline))
                connection.request(method, path, content, {"Host": target.authority, **headers})
                return self._read(target, connection.getresponse())
        except EgressError:
            raise
        except TimeoutError:
            raise Unanswered(f"{target.origin}: {deadline.over()}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = printable(str(error), 300) or type(error).__name__  # it may repeat the status line
            raise Unanswered(f"{target.origin}: {reason}") from None

    def _connected(
        self, deadline: CallDeadline, target: EgressTarget, proxy: EgressProxy | None
    ) -> socket.socket:
        """Connect to a checked address of *target*, or to *proxy*; verify TLS by the name of the host."""
        peer = target if proxy is None else proxy.target
        addresses = resolve_within(deadline, self.resolve, peer)
        if proxy is None:
            check_addresses(target, addresses, self.internal_hosts)
        channel = _first_that_answers(deadline, peer, addresses)
        try:
            if proxy is not None and proxy.target.scheme == "https":
                channel = self._encrypted(deadline, channel, proxy.target)
            if target.scheme == "http":
                return channel
            if proxy is not None:
                open_tunnel(TimedChannel(channel, deadline), target, proxy.headers)
            return self._encrypted(deadline, channel, target)
        except BaseException:
            channel.close()
            raise

    def _encrypted(self, deadline: CallDeadline, channel: socket.socket, peer: EgressTarget) -> ssl.SSLSocket:
        encrypted = self.context().wrap_socket(
            channel, server_hostname=peer.host, do_handshake_on_connect=False
        )
        try:
            encrypted.settimeout(deadline.left())
            encrypted.do_handshake()
        except BaseException:
            encrypted.close()
            raise
        return encrypted

    def _read(self, target: EgressTarget, response: http.client.HTTPResponse) -> EgressAnswer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        most = self.bounds.max_bytes
        if not self.bounds.reads_whole_body:
            return EgressAnswer(response.status, headers, response.read1(most))
        too_large = AnswerTooLarge(f"{target.origin} answers with more than {most:,} bytes")
        if (response.length or 0) > most:
            raise too_large
        body = response.read(most + 1)
        if len(body) > most:
            raise too_large
        if response.length:
            raise Unanswered(f"{target.origin}: the answer ends {response.length:,} bytes early")
        return EgressAnswer(response.status, headers, body)


def _first_that_answers(
    deadline: CallDeadline, target: EgressTarget, addresses: Sequence[str]
) -> socket.socket:
    reason: OSError = OSError(f"{target.host} has no address")
    for number, address in enumerate(addresses):
        seconds = deadline.left() / (len(addresses) - number)
        try:
            return socket.create_connection((address, target.port), timeout=seconds)
        except OSError as error:
            reason = error
    raise reason
