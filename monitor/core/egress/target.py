"""The target of a request: a URL in parts."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from monitor.core.clipping import clipped
from monitor.core.egress.errors import TargetRefused

PORTS = {"http": 80, "https": 443}


class PasswordInUrl(TargetRefused):
    pass


@dataclass(frozen=True)
class EgressTarget:
    """A URL in parts. *path* includes the query; *host* is in lower case, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """The URL without its path, which may be a secret."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The host and, if it is not that of the scheme, the port, as the header ``Host`` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def redirected(self, location: str) -> EgressTarget:
        """Return the target to which *location*, a URL or a path, leads from here.

        Raises:
            TargetRefused: it is no target, or leads from https to http.
        """
        try:
            to = parse_target(urljoin(f"{self.origin}{self.path}", location))
        except (TargetRefused, ValueError):  # ValueError: such as an unclosed bracket
            raise TargetRefused(
                f"{self.origin} redirects to {clipped(location)!r}: expected an http or https URL"
            ) from None
        if self.scheme == "https" and to.scheme == "http":
            raise TargetRefused(f"{self.origin} redirects to {to.origin}, which is not encrypted")
        return to


def parse_target(url: str, example: str = "https://www.example.org/path") -> EgressTarget:
    """Return *url* in parts; the message of an error has the *example*.

    Raises:
        TargetRefused: it is no http or https URL.
        PasswordInUrl: it contains a user name or a password.
    """
    expected = f"expected a URL such as {example}, got {clipped(url)!r}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # an invalid port or bracket
        raise TargetRefused(expected) from None
    is_plain = url.isprintable() and url.isascii() and " " not in url and "\\" not in url
    if parts.scheme not in PORTS or not host or port == 0 or not is_plain:
        raise TargetRefused(expected)
    if "@" in parts.netloc:
        raise PasswordInUrl("expected a URL without a password")
    query = f"?{parts.query}" if parts.query else ""
    return EgressTarget(parts.scheme, host, port or PORTS[parts.scheme], f"{parts.path or '/'}{query}")
