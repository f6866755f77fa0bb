"""The session by which the exporter posts spans: client and bounds are those of ``monitor.core.egress``."""

from __future__ import annotations

import io
import ssl
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import requests
from requests.adapters import BaseAdapter

from monitor.core.egress.bounds import TRACES
from monitor.core.egress.client import EgressClient, verified_context
from monitor.core.egress.errors import EgressError, Unanswered
from monitor.core.egress.target import parse_target


class EgressAdapter(BaseAdapter):
    """Sends the requests of a session. *verify* and *cert* are files that the exporter's variables name."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float | None, float | None] | None = None,
        verify: bool | str = True,
        cert: bytes | str | tuple[bytes | str, bytes | str] | None = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Return the answer.

        Raises:
            requests.ConnectionError: there is none; the exporter tries again.
            requests.RequestException: it is not acceptable.
        """
        del stream, proxies  # bodies are bounded; the client reads the proxies of the environment itself
        seconds = timeout if isinstance(timeout, int | float) else TRACES.seconds
        bounds = replace(TRACES, seconds=min(seconds, TRACES.seconds))
        client = EgressClient(bounds, context=partial(_context, verify, cert))
        if not isinstance(request.body, bytes):
            raise requests.RequestException("expected a body of bytes", request=request)
        headers = {name: str(value) for name, value in request.headers.items()}
        headers["Accept-Encoding"] = "identity"
        try:
            answer = client.send(str(request.method), parse_target(str(request.url)), headers, request.body)
        except Unanswered as error:
            raise requests.ConnectionError(str(error), request=request) from error
        except EgressError as error:
            raise requests.RequestException(str(error), request=request) from error
        response = requests.Response()
        response.status_code, response.url, response.request = answer.status, str(request.url), request
        response.headers.update(answer.headers)
        response.raw = io.BytesIO(answer.body)
        return response

    def close(self) -> None:
        """Do nothing: no connection is kept."""


def bounded_session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, EgressAdapter())
    return session


def _context(
    verify: bool | str, cert: bytes | str | tuple[bytes | str, bytes | str] | None
) -> ssl.SSLContext:
    if verify is True and cert is None:
        return verified_context()
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if isinstance(cert, tuple):
        context.load_cert_chain(*cert)
    elif cert is not None:
        context.load_cert_chain(cert)
    return context
