"""Names and addresses of hosts, and the patterns that a policy allows.

A name is never resolved: the answer may be another one when ssh asks. So patterns of names apply to names,
and networks apply to addresses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Union

from reporters.remote.policy.shapes import TextShape

Address = Union["ipaddress.IPv4Address", "ipaddress.IPv6Address"]
Network = Union["ipaddress.IPv4Network", "ipaddress.IPv6Network"]

_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}([.]{_LABEL})*", re.ASCII)
# A name whose last label is a number in any notation: resolvers read "127.1" and "0x7f000001" as addresses.
_NUMERIC = re.compile(r"(.*[.])?(0x[0-9a-f]*|[0-9]+)", re.ASCII)
_IPV4 = re.compile(r"(0|[1-9]\d{0,2})([.](0|[1-9]\d{0,2})){3}", re.ASCII)
_HOP = re.compile(
    r"(?:[\w.-]+@)?(?:\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<host>[\w.-]+))(?::\d{1,5})?",
    re.ASCII | re.IGNORECASE,
)


class UnknownHost(ValueError):
    """A text is neither the name nor the address of a host."""


def parse_host(text: object) -> str | Address:
    """Return the name in lower case, or the address.

    Raises:
        UnknownHost: *text* is neither, such as a URL, "user@host", or an address in an unusual notation.
    """
    if not isinstance(text, str) or len(text) > 253:
        raise UnknownHost(repr(text))
    host = text.lower()
    if ":" in host or _IPV4.fullmatch(host):
        return _parse_address(host)
    name = host.removesuffix(".")
    if not _NAME.fullmatch(name) or _NUMERIC.fullmatch(name):
        raise UnknownHost(repr(text))
    return name


def _parse_address(text: str) -> Address:
    ipv4 = text.rpartition(":")[2]
    # Python accepts any text after "%" and, in some versions of 3.9, octal numbers, which resolvers read so.
    if "%" in text or ("." in ipv4 and not _IPV4.fullmatch(ipv4)):
        raise UnknownHost(repr(text))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise UnknownHost(repr(text)) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_hops(text: object) -> list[str | Address]:
    """Return the hosts of ssh's jump hosts, ``[user@]host[:port]`` separated by commas.

    Raises:
        UnknownHost: *text* has another form.
    """
    hops = [_HOP.fullmatch(hop) for hop in text.split(",")] if isinstance(text, str) else [None]
    if not all(hops):
        raise UnknownHost(repr(text))
    return [parse_host(hop["bracketed"] or hop["host"]) for hop in hops if hop]


def parse_contact(text: object) -> str | Address:
    """Return the host of a GRAM contact, ``host[:port][/service][:subject]``.

    Raises:
        UnknownHost: *text* has another form.
    """
    if not isinstance(text, str):
        raise UnknownHost(repr(text))
    return parse_host(re.split("[:/]", text, maxsplit=1)[0])


def _problem(pattern: str) -> str:
    try:
        HostPattern(pattern)
    except ValueError as error:
        return str(error)
    return ""


HOST_PATTERN = TextShape(
    r"[A-Za-z0-9_.:/*-]{1,253}",
    'a host name (with "*" for part of a label, or "*." for any subdomain), an address or a network',
    problem=_problem,
)


class HostPattern:
    """A pattern of a policy: a name, perhaps with ``*``, an address, or a network such as "10.0.0.0/8".

    ``*.example.org`` is any host below example.org, ``login*.example.org`` is login1.example.org but not
    login.a.example.org, and ``*`` is any name or address.

    Raises:
        ValueError: *pattern* is none of these.
    """

    def __init__(self, pattern: str) -> None:
        text = pattern.lower()
        self._network: Network | None = None
        self._name: re.Pattern[str] | None = None
        self._is_any = text == "*"
        if ":" in text or "/" in text or _IPV4.fullmatch(text):
            self._network = ipaddress.ip_network(text)
        elif not self._is_any:
            plain, last_label = text.replace("*", "x"), text.rpartition(".")[2]
            if not _NAME.fullmatch(plain) or _NUMERIC.fullmatch(plain) or "*" in last_label:
                raise ValueError("neither a host name nor an address nor a network")
            head, tail = ("(?:[^.]+[.])+", text[2:]) if text.startswith("*.") else ("", text)
            self._name = re.compile(head + re.escape(tail).replace(r"\*", "[^.]*"))

    def matches(self, host: str | Address) -> bool:
        """Return whether the pattern allows *host*, a result of ``parse_host``."""
        if self._is_any:
            return True
        if isinstance(host, str):
            return self._name is not None and self._name.fullmatch(host) is not None
        return self._network is not None and host in self._network


def is_allowed(host: str | Address, patterns: Iterable[HostPattern]) -> bool:
    """Return whether one of *patterns* matches *host*."""
    return any(pattern.matches(host) for pattern in patterns)
