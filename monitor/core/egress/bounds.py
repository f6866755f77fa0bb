"""What a request that goes out may cost, by its purpose."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class EgressBounds:
    """The bounds of a call.

    Attributes:
        seconds: for all of it: names, connecting, TLS, redirects, head and body.
        max_bytes: of the body of the answer.
        redirects: that a GET follows; other methods follow none.
        is_one_origin: redirects may not lead to another host, port or scheme.
        has_proxy: the proxies of ``https_proxy``, ``http_proxy`` and ``no_proxy`` are used.
        reads_whole_body: a larger body is an error. Otherwise only the bytes that come first are read.
    """

    seconds: float
    max_bytes: int
    redirects: int = 0
    is_one_origin: bool = True
    has_proxy: bool = True
    reads_whole_body: bool = True


PROVIDER = EgressBounds(5.0, MIB, redirects=3)
# A proxy would resolve the name again, after its addresses have been checked here.
WEBHOOK = EgressBounds(10.0, 4096, has_proxy=False, reads_whole_body=False)
FEED = EgressBounds(20.0, 16 * MIB, redirects=3, is_one_origin=False)
TRACES = EgressBounds(5.0, MIB)
