"""Ask gridcast how long a job will take and where, tell it how jobs ended, and send it reports.

One file, standard library only, Python 3.9 and newer: install it with pip, or copy it as
``gridcast_client.py``::

    from gridcast_client import Client

    client = Client("https://grid.example.org", token_file="/etc/gridcast/token")
    forecast = client.ask("gather-main", quantiles=[0.5, 0.9])
    ranking = client.rank(["preco-ncsa", "preco-sdsc"])
    client.tell(forecast.id, "job-81", "passed", started_at=start, ended_at=end)  # tell_all: of many jobs
    client.send([{"series": "nightly-copy", "seconds": 61.2, "outcome": "passed"}])

A call ends within its time limit, name resolution, TLS and every try included. Each call may be repeated:
the same outcome and the same report count once.

Errors, each with ``again``: whether the same call may succeed later::

    GridcastError
    |-- InvalidInput         for good   an argument, a variable or a file of the caller is unusable
    |-- Unreachable          again      no answer: no address, no connection, or it broke
    |   `-- TimedOut         again      no whole answer within the time limit
    |-- Untrusted            for good   the server's certificate is not from a trusted authority
    |-- UnusableAnswer       for good   the answer is none of gridcast's: a redirect, too large, malformed
    |-- Problem                         gridcast says no: status, code, detail, fields
    |   |-- Overloaded       again      408, 425, 429 and 5xx; retry_after_seconds
    |   |-- NoForecast       for good   no forecast can be trusted: too_few, segment_changed, stale, site_down
    |   |-- NotAllowed       for good   401 and 403: the token is invalid, or lacks a scope or a permission
    |   `-- Refused          for good   every other problem: what was asked for is invalid or unknown
    `-- SpoolError           again      the spool cannot be read or written
        `-- SpoolFull        again      the spool has reached its bound; delivery makes room
"""

from __future__ import annotations

import base64
import collections.abc
import contextlib
import dataclasses
import gzip
import http.client
import io
import json
import os
import queue
import random
import re
import socket
import ssl
import stat
import threading
import time
import typing
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar, Union

__version__ = "0.1.0"

TIMEOUT_SECONDS = 30.0
CONNECT_SECONDS = 10.0  # of one address, so that the next one gets its turn
TRIES = 4
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PROBLEM_CHARACTERS = 500
MOST_RETRY_SECONDS = 3600.0
MOST_WAIT_SECONDS = 5  # for a forecast that is being computed
_WAITED_FOR = ("forecasts", "forecasts/rank")
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.5, 30.0
MOST_OUTCOMES = 1000  # of one request
MOST_REPORTS, MOST_REPORT_BYTES = 1000, 4 * 1024 * 1024  # of one request; the server accepts more
PAGE = 1000  # items of one answer
SPOOL_BYTES = 64 * 1024 * 1024
LOCK_PAUSE_SECONDS = 0.05
LEFTOVER_SECONDS = 3600.0  # a temporary file of this age is that of a killed process

Names = Union[str, Sequence[str]]  # one, or several
Candidate = Union[str, Mapping[str, Names], Sequence[str]]
Report = Union[Mapping[str, Any], str, bytes]
T = TypeVar("T")


# Errors


class GridcastError(Exception):
    """The base class. *again*: whether the same call may succeed later."""

    again = False


class InvalidInput(GridcastError):
    """An argument, a variable or a file of the caller is unusable."""


class Unreachable(GridcastError):
    """There is no answer."""

    again = True


class TimedOut(Unreachable):
    """There is no whole answer within the time limit."""


class Untrusted(GridcastError):
    """The server's certificate is not from a trusted authority, or names another host."""


class UnusableAnswer(GridcastError):
    """The answer is none of gridcast's."""


class Problem(GridcastError):
    """gridcast says no. *code* is stable, *fields* are those of the problem (RFC 9457)."""

    def __init__(self, message: str, status: int, fields: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.status, self.fields = status, fields
        self.code = str(fields.get("code", ""))
        self.detail = _printable(fields.get("detail", ""))


class Overloaded(Problem):
    """gridcast cannot answer now. *retry_after_seconds* is how long it asks to wait."""

    again = True
    retry_after_seconds: Optional[float] = None


class NoForecast(Problem):
    """No forecast can be trusted. The code tells why."""


class NotAllowed(Problem):
    """The token is invalid, or lacks a scope or a permission."""


class Refused(Problem):
    """What was asked for is invalid or unknown."""


class SpoolError(GridcastError):
    """The spool cannot be read or written."""

    again = True


class SpoolFull(SpoolError):
    """The spool has reached its bound."""


# Answers: fields that this version does not know are ignored.


@dataclass(frozen=True)
class Interval:
    level: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Success:
    """The *probability* that the next run passes; the time until a run has passed, each failure retried."""

    n: int
    probability: float
    expected_seconds: Optional[float]
    quantiles: Optional[Mapping[float, float]]


@dataclass(frozen=True)
class TrackRecord:
    """Scores of the newest *n* forecasts of this metric by this method."""

    n: int
    level: float
    mean_absolute_error: Optional[float]
    relative_error: Optional[float]
    mean_absolute_scaled_error: Optional[float]
    coverage: Optional[float]
    winkler_score: Optional[float]


@dataclass(frozen=True)
class StageForecast:
    metric: str
    mean: Optional[float]
    median: Optional[float]
    method: str
    predictor: str


@dataclass(frozen=True)
class Forecast:
    """A forecast. *id* is what ``tell`` needs; *quantiles* maps probabilities to values in *unit*."""

    id: int
    series: str
    metric: str
    unit: str
    method: str
    predictor: str
    mean: float
    median: float
    interval: Interval
    quantiles: Mapping[float, float]
    n: int
    at: datetime
    issued_at: datetime
    data_until: datetime
    data_age_seconds: float
    success: Optional[Success]
    track_record: TrackRecord
    stages: tuple[StageForecast, ...]


@dataclass(frozen=True)
class Ranked:
    """A candidate with a forecast: *seconds* is the quantile, asked for, of the time until a run passed.

    *candidate* is its position in the question, *key* the caller's own key; tied ones share a *rank*.
    *method* is ``elsewhere``, with *n* 0, where the application has not run, or too few times.
    """

    candidate: int
    key: Optional[str]
    rank: int
    is_tied: bool
    series: str
    seconds: float
    expected_seconds: Optional[float]
    success_probability: float
    median: float
    mean: float
    forecast: int
    n: int
    data_age_seconds: float
    method: str = "auto"


@dataclass(frozen=True)
class Unranked:
    """A candidate without a forecast; *code* tells why."""

    candidate: int
    key: Optional[str]
    code: str
    detail: str
    series: tuple[str, ...]


@dataclass(frozen=True)
class Ranking:
    """Every candidate, once: *ranked*, the best first, or *unranked*."""

    quantile: float
    at: datetime
    ranked: tuple[Ranked, ...]
    unranked: tuple[Unranked, ...]


@dataclass(frozen=True)
class Told:
    """An outcome that gridcast has stored; *is_duplicate*: it had been stored before."""

    forecast: int
    job: str
    outcome: str
    seconds: float
    received_at: datetime
    is_duplicate: bool


@dataclass(frozen=True)
class Ended:
    """How a job ended for which *forecast* was asked: ``passed`` or ``failed``.

    *seconds* is the actual duration of what was forecast, by default the time from start to end.
    """

    forecast: int
    job: str
    outcome: str
    started_at: datetime
    ended_at: datetime
    seconds: Optional[float] = None


@dataclass(frozen=True)
class OutcomeReceipt:
    """What became of one of many outcomes; *stored* is None if it was refused: *code* and *error* say why."""

    stored: Optional[Told]
    code: str
    error: str


@dataclass(frozen=True)
class Receipt:
    """What became of one report. *conflict*: another report of the same run was stored before."""

    run: Optional[str]
    accepted: bool
    duplicate: bool
    conflict: bool
    error: str


@dataclass(frozen=True)
class Delivery:
    """The *receipts*, in the order sent; *waiting* files are left in the spool, because of *error*.

    Refused reports and outcomes are kept below ``refused/`` in the spool.
    """

    receipts: tuple[Receipt, ...] = ()
    told: tuple[Told, ...] = ()
    not_told: tuple[str, ...] = ()
    waiting: int = 0
    error: Optional[GridcastError] = None

    @property
    def refused(self) -> tuple[str, ...]:
        """The errors of refused reports and outcomes."""
        return tuple(receipt.error for receipt in self.receipts if not receipt.accepted) + self.not_told


@dataclass(frozen=True)
class Reason:
    """Why a site or a resource is not up; *resource* is None if all of the site is concerned."""

    state: str
    since: datetime
    until: Optional[datetime]
    resource: Optional[str]
    text: str


@dataclass(frozen=True)
class Site:
    """A site; *state* is ``up``, ``held``, ``maintenance``, ``down`` or ``unknown``."""

    name: str
    title: str
    resources: tuple[str, ...]
    state: str
    since: Optional[datetime]
    until: Optional[datetime]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Resource:
    """A resource of *site*, with its state as that of a site, and the kinds of access to it."""

    name: str
    site: str
    shell: Optional[str]
    transfer: Optional[str]
    batch: Optional[str]
    state: str
    since: Optional[datetime]
    until: Optional[datetime]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Series:
    name: str
    suite: str
    probe: str
    schedule: str
    is_enabled: bool


@dataclass(frozen=True)
class Run:
    """What became of one slot of a series; *stage* and *failed_resource* say where it failed."""

    id: str
    series: str
    slot: datetime
    state: str
    reason: str
    stage: str
    failed_resource: str
    started_at: Optional[datetime]
    ended_at: Optional[datetime]


class _Unfit(ValueError):
    """A value is not of the declared type; the message names the field."""


def _decoded(kind: Any, value: Any, where: str) -> Any:
    """Return *value*, parsed from JSON, as a *kind*: a dataclass, a scalar, a time, or a tuple of such."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Union:
        return None if value is None else _decoded(arguments[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_decoded(arguments[0], item, f"{where}[{number}]") for number, item in enumerate(value))
    if origin is collections.abc.Mapping and isinstance(value, dict):
        return {
            _probability(key, where): _decoded(float, item, f"{where}.{key}") for key, item in value.items()
        }
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        names = [each.name for each in dataclasses.fields(kind) if each.name in value or _is_required(each)]
        return kind(  # type: ignore[operator]  # a class
            **{name: _decoded(hints[name], value.get(name), f"{where}.{name}".lstrip(".")) for name in names}
        )
    return _scalar(kind, value, where)


def _is_required(each: dataclasses.Field[Any]) -> bool:
    return each.default is dataclasses.MISSING


def _scalar(kind: Any, value: Any, where: str) -> Any:
    if kind is datetime and isinstance(value, str):
        return _time(value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    shown = _printable(json.dumps(value))[:80]
    if isinstance(value, (dict, list)):
        shown = "an object" if isinstance(value, dict) else "a list"
    raise _Unfit(f"{where or 'the answer'}: expected {_name(kind)}, got {shown}")


def _probability(key: str, where: str) -> float:
    try:
        return float(key)
    except ValueError:
        raise _Unfit(f"{where}: expected probabilities, got {_printable(key)[:80]!r}") from None


def _name(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) or origin is collections.abc.Mapping:
        return "an object"
    names = {float: "a number", int: "an integer", str: "a text", bool: "true or false", datetime: "a time"}
    return "a list" if origin is tuple else names.get(kind, str(kind))


_TIME = re.compile(r"(.{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _time(text: str, where: str) -> datetime:
    """Return an RFC 3339 time; Python 3.9 reads neither a Z nor an odd number of digits by itself."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        micros = (match[2] or "").ljust(6, "0")[:6]
        return datetime.fromisoformat(f"{match[1]}.{micros}{match[3].replace('Z', '+00:00')}")
    except ValueError:
        raise _Unfit(f"{where}: expected a time with a zone, got {_printable(text[:60])!r}") from None


def _printable(text: object) -> str:
    """Return *text*, which any server may have written, on one line and cut to a limited length."""
    line = "".join(character if character.isprintable() else " " for character in str(text))
    return line if len(line) <= MOST_PROBLEM_CHARACTERS else f"{line[:MOST_PROBLEM_CHARACTERS]}..."


# Transport


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Optional[bytes] = field(default=None, repr=False)


@dataclass(frozen=True)
class Response:
    """An answer of any status; the names of *headers* are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


# Sends a request within so many seconds. Raises Unreachable, Untrusted or UnusableAnswer.
Transport = Callable[[Request, float], Response]


class _Deadline:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def remaining_seconds(self) -> float:
        return self._until - time.monotonic()

    def left_seconds(self) -> float:
        """Return the limit of the next wait. Raises TimedOut if no time remains."""
        left = self.remaining_seconds
        if left <= 0:
            raise self.timed_out()
        return left

    def timed_out(self) -> TimedOut:
        return TimedOut(f"no whole answer within {self._seconds:.3g} s")


class _Reader(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._deadline.left_seconds())
        return self._connection.recv_into(buffer)


class _Stream:
    """What ``http.client`` needs of a socket, with a deadline over everything.

    The timeout of a socket is that of one read: a server that sends a byte now and then would hold the
    caller for ever.
    """

    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._connection, self._deadline))

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connection.settimeout(self._deadline.left_seconds())
            rest = rest[self._connection.send(rest) :]

    def close(self) -> None:
        """Leave that to the owner of the socket: ``http.client`` closes before the body is read."""


@dataclass(frozen=True)
class _Proxy:
    host: str
    port: int
    authorization: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


class HttpTransport:
    """Requests over HTTP/1.1, each on a connection of its own; redirects are never followed.

    *proxy* is a URL such as ``http://user:password@proxy.example.org:3128``, ``none``, or by default what
    ``https_proxy``, ``http_proxy`` and ``no_proxy`` say.
    """

    def __init__(self, *, ca_file: Optional[str] = None, proxy: Optional[str] = None) -> None:
        self._ca_file, self._proxy = ca_file, proxy
        self._context: Optional[ssl.SSLContext] = None
        if ca_file:
            self._tls()
        if proxy and proxy != "none":
            _parsed_proxy(proxy)

    def __call__(self, request: Request, timeout_seconds: float) -> Response:
        deadline = _Deadline(timeout_seconds)
        parts = urllib.parse.urlsplit(request.url)
        proxy = self._proxy_for(parts)
        target = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        headers = {**request.headers, "Connection": "close"}
        if proxy and parts.scheme == "http":
            target, headers = request.url, {**headers, **proxy.headers}
        with self._translated(parts, proxy, deadline), contextlib.ExitStack() as stack:
            plain_or_secure = stack.enter_context(self._connected(parts, proxy, deadline))
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port or _port(parts))
            connection.sock = _Stream(plain_or_secure, deadline)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                # A server that refuses a large body answers, and closes, before it has read all of it.
                connection.request(request.method, target, request.body, headers)
            response = stack.enter_context(connection.getresponse())
            body = _body(response, deadline)
            return Response(
                response.status, {name.lower(): text for name, text in response.getheaders()}, body
            )

    def _connected(
        self, parts: urllib.parse.SplitResult, proxy: Optional[_Proxy], deadline: _Deadline
    ) -> socket.socket:
        host, port = parts.hostname or "", parts.port or _port(parts)
        connection = _socket(proxy.host if proxy else host, proxy.port if proxy else port, deadline)
        try:
            if parts.scheme == "https":
                if proxy:
                    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                    _open_tunnel(_Stream(connection, deadline), server, proxy)
                connection.settimeout(deadline.left_seconds())
                connection = self._tls().wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
        return connection

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = ssl.create_default_context(cafile=self._ca_file or None)
            except OSError as error:  # ssl.SSLError is one
                raise InvalidInput(
                    f"cannot use the certificates in {self._ca_file}: {error.strerror or error};"
                    " expected a file of certificates in PEM"
                ) from None
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        return self._context

    def _proxy_for(self, parts: urllib.parse.SplitResult) -> Optional[_Proxy]:
        if self._proxy:
            return None if self._proxy == "none" else _parsed_proxy(self._proxy)
        text = urllib.request.getproxies().get(parts.scheme)
        if not text or _is_loopback(parts.hostname) or urllib.request.proxy_bypass(parts.netloc):
            return None
        return _parsed_proxy(text)

    @contextlib.contextmanager
    def _translated(
        self, parts: urllib.parse.SplitResult, proxy: Optional[_Proxy], deadline: _Deadline
    ) -> Iterator[None]:
        way = f" through the proxy {proxy.host}:{proxy.port}" if proxy else ""
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            reason = f"the certificate of {parts.netloc} is not trusted: {error.verify_message}"
            raise Untrusted(f"{reason}; name the certificates of its authority with a CA file") from None
        except OSError as error:
            deadline.left_seconds()  # the time limit is the reason, if it is over
            reason = error.strerror or str(error) or "the connection broke"
            hint = "; check the name, the network and the proxy settings" if not way else ""
            raise Unreachable(f"no answer from {parts.netloc}{way}: {reason}{hint}") from None
        except http.client.IncompleteRead:
            raise Unreachable(f"the answer of {parts.netloc}{way} ended too early") from None
        except http.client.HTTPException as error:
            what = f"{parts.netloc}{way} does not answer in HTTP"
            raise UnusableAnswer(f"{what}: {_printable(repr(error))}") from None


def _body(response: http.client.HTTPResponse, deadline: _Deadline) -> bytes:
    body = bytearray()
    while piece := response.read(65536):
        body += piece
        if len(body) > MOST_ANSWER_BYTES:
            raise UnusableAnswer(f"the answer is larger than {MOST_ANSWER_BYTES} bytes")
        deadline.left_seconds()
    if response.length:  # is not checked by http.client
        raise http.client.IncompleteRead(bytes(body[:100]), response.length)
    return bytes(body)


def _port(parts: urllib.parse.SplitResult) -> int:
    return 443 if parts.scheme == "https" else 80


def _is_loopback(host: Optional[str]) -> bool:
    return host in {"localhost", "::1"} or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host or ""))


def _socket(host: str, port: int, deadline: _Deadline) -> socket.socket:
    """Return a connection to the first address of *host* that accepts one. Raises OSError: none does."""
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in _addresses(host, port, deadline):
        try:
            connection = socket.socket(family, kind, protocol)
        except OSError as error:  # this host lacks the address family
            failure = error
            continue
        try:
            connection.settimeout(min(CONNECT_SECONDS, deadline.left_seconds()))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            failure = error
            connection.close()
        except BaseException:
            connection.close()
            raise
    raise failure


def _addresses(host: str, port: int, deadline: _Deadline) -> list[Any]:
    """Return the addresses of *host*. The resolver has no time limit, so a thread waits for it."""
    answers: queue.SimpleQueue[Union[list[Any], OSError]] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, UnicodeError) as error:
            answers.put(OSError(getattr(error, "strerror", None) or f"no valid name: {error}"))

    threading.Thread(target=resolve, name="gridcast resolver", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left_seconds())
    except queue.Empty:
        raise deadline.timed_out() from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _open_tunnel(stream: _Stream, server: str, proxy: _Proxy) -> None:
    lines = [f"CONNECT {server} HTTP/1.1", f"Host: {server}"]
    lines += [f"{name}: {text}" for name, text in proxy.headers.items()]
    stream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    response = http.client.HTTPResponse(stream, method="CONNECT")  # type: ignore[arg-type]  # of a socket: makefile
    try:
        response.begin()
        if response.status != 200:
            raise OSError(
                f"the proxy refused a connection to {server}: {response.status} {_printable(response.reason)}"
            )
    finally:
        response.close()


def _parsed_proxy(text: str) -> _Proxy:
    """Return the proxy at the URL *text*, which may have a password: errors do not show it."""
    expected = "expected the URL of an HTTP proxy such as http://proxy.example.org:3128"
    try:
        parts = urllib.parse.urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or 3128
    except ValueError:
        raise InvalidInput(f"proxy: {expected}, got another text") from None
    if parts.scheme != "http" or not host:
        raise InvalidInput(f"proxy: {expected}, got the scheme {parts.scheme[:20]!r}")
    credentials = urllib.parse.unquote(f"{parts.username or ''}:{parts.password or ''}")
    encoded = base64.b64encode(credentials.encode()).decode()
    return _Proxy(host, port, f"Basic {encoded}" if parts.username else "")


# Spool


class Spool:
    """Reports and outcomes in *directory* until gridcast has them, at most *most_bytes*.

    A file holds what one call gave, and appears whole or not at all: a kill, a full disk or a power failure
    leaves no half of it. Several processes may share a spool; one at a time delivers it. POSIX only.
    """

    def __init__(self, directory: Union[str, Path], *, most_bytes: int = SPOOL_BYTES) -> None:
        self.directory, self.most_bytes = Path(directory), most_bytes
        self._refused = self.directory / "refused"
        with self._errors("make"):
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            self.directory.mkdir(mode=0o700, exist_ok=True)
            self._refused.mkdir(mode=0o700, exist_ok=True)
            _check_private(self.directory.stat(), f"the spool {self.directory}", stat.S_IWGRP | stat.S_IWOTH)

    def add(self, kind: str, body: bytes) -> None:
        """Keep *body*, also beyond a power failure. Raises SpoolFull or SpoolError; then nothing was kept."""
        with self._errors("write"):
            held = sum(map(_size, self._files(self.directory, self._refused)))
        if held + len(body) > self.most_bytes:
            raise SpoolFull(
                f"the spool {self.directory} is full: {held} of {self.most_bytes} bytes;"
                f" deliver it, or look at what was refused in {self._refused}"
            )
        self._write(self.directory / f"{time.time_ns():020d}-{uuid.uuid4().hex[:12]}.{kind}", body)

    def waiting(self, kind: str = "") -> list[Path]:
        """Return the files that wait, the oldest first."""
        with self._errors("read"):
            return sorted(path for path in self._files(self.directory) if path.suffix.endswith(kind))

    def refuse(self, name: str, items: Iterable[tuple[bytes, str]]) -> None:
        """Keep *items*, each with the error, as the file *name* below ``refused/``."""
        lines = [
            json.dumps({"error": error, "sent": item.decode("utf-8", "replace")}) for item, error in items
        ]
        if lines:
            self._write(self._refused / name, "\n".join([*lines, ""]).encode())

    def remove(self, path: Path) -> None:
        with self._errors("write"):
            path.unlink()

    def read(self, path: Path) -> bytes:
        with self._errors("read"):
            return path.read_bytes()

    @contextlib.contextmanager
    def locked(self, wait_seconds: float, sleep: Callable[[float], None]) -> Iterator[None]:
        """Hold the lock of delivery, which a kill releases.

        Raises:
            SpoolError: another process has held it for *wait_seconds*.
        """
        import fcntl  # noqa: PLC0415  # POSIX only, as the spool

        until = time.monotonic() + wait_seconds
        with self._errors("lock"):
            lock = (self.directory / "lock").open("a")
        with lock:
            while True:
                with self._errors("lock"):
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if time.monotonic() >= until:
                            what = f"cannot lock the spool {self.directory}"
                            raise SpoolError(f"{what}: another process delivers it") from None
                sleep(LOCK_PAUSE_SECONDS)
            with self._errors("tidy"):
                self._remove_leftovers()
            yield

    def _files(self, *directories: Path) -> list[Path]:
        return [
            path
            for directory in directories
            for path in directory.iterdir()
            if path.suffix in {".reports", ".outcome"} and not path.name.startswith(".")
        ]

    def _write(self, path: Path, body: bytes) -> None:
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        with self._errors("write"):
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(descriptor, "wb") as file:  # noqa: PTH123  # of a descriptor
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _remove_leftovers(self) -> None:
        for directory in (self.directory, self._refused):
            for path in directory.glob(".*.tmp"):
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                        path.unlink()

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SpoolError(
                f"cannot {verb} the spool {self.directory}: {error.strerror or error}"
            ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # delivered by another process
        return 0


# The client


class Client:
    """A client of the gridcast at *url*, for any number of threads; the defaults come from the environment.

    Args:
        url: as in the browser, ``https://grid.example.org``; else ``GRIDCAST_URL``.
        token: else the content of *token_file*, else ``GRIDCAST_TOKEN``, else ``GRIDCAST_TOKEN_FILE``. Only
            its owner may read the file.
        spool: a directory; else ``GRIDCAST_SPOOL``. With it, reports wait there until gridcast has them.
        ca_file: certificates of the server's authority, in PEM; else ``GRIDCAST_CA_FILE``, else the system's.
        proxy: see ``HttpTransport``.
        timeout_seconds: the limit of every call, all of its *tries* and the pauses between them included.
        plain_http: send the token without TLS to another host than this one.
        user_agent: name and version of the program that calls, ``slurm-select/1.0``.
        transport, sleep, jitter: what sends a request, waits, and draws a number from 0 to 1.

    Raises:
        InvalidInput: the URL, the token, its file, the proxy or the certificates are unusable.
        SpoolError: the spool cannot be made, or other users may write to it.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        token_file: Union[str, Path, None] = None,
        spool: Union[str, Path, Spool, None] = None,
        ca_file: Optional[str] = None,
        proxy: Optional[str] = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        tries: int = TRIES,
        plain_http: bool = False,
        user_agent: str = "",
        transport: Optional[Transport] = None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if timeout_seconds <= 0 or tries < 1:
            raise InvalidInput("expected a time limit above 0 and at least one try")
        self.url = _checked_url(url or environ.get("GRIDCAST_URL", ""), plain_http=plain_http)
        self._token = _token(token, token_file, environ)
        spool = spool or environ.get("GRIDCAST_SPOOL")
        self.spool = Spool(spool) if isinstance(spool, (str, Path)) else spool
        self.timeout_seconds, self.tries = timeout_seconds, tries
        self._agent = f"{user_agent} gridcast-client/{__version__}".strip()
        if not _HEADER.fullmatch(self._agent):
            raise InvalidInput("user agent: expected printable ASCII")
        ca_file = ca_file or environ.get("GRIDCAST_CA_FILE")
        self._transport = transport or HttpTransport(ca_file=ca_file, proxy=proxy)
        self._sleep, self._jitter = sleep, jitter

    def ask(
        self,
        series: str = "",
        *,
        application: str = "",
        roles: Optional[Mapping[str, Names]] = None,
        resources: Names = (),
        metric: str = "",
        stage: str = "",
        total: str = "",
        at: Optional[datetime] = None,
        horizon_seconds: Optional[float] = None,
        quantiles: Sequence[float] = (0.5, 0.9, 0.95),
        level: float = 0.8,
        method: str = "",
        max_age_seconds: Optional[float] = None,
    ) -> Forecast:
        """Return how long the next run takes: of *series*, or of *application* on *resources* or by *roles*.

        The forecast is of *metric*, of *stage* or of *total* (``total``, ``essential`` or ``core``).

        Raises:
            NoForecast: there are too few or too old data, or a site is down.
            GridcastError: every other reason.
        """
        query: dict[str, Any] = {
            "role": [f"{role}:{','.join(_listed(names))}" for role, names in (roles or {}).items()]
        }
        query |= {"series": series, "application": application, "resources": ",".join(_listed(resources))}
        query |= {"metric": metric, "stage": stage, "total": total, "method": method, "level": level}
        query |= {"at": _rfc3339("at", at), "horizon_seconds": horizon_seconds}
        query |= {"max_age_seconds": max_age_seconds}
        query |= {"quantiles": ",".join(repr(float(each)) for each in quantiles)}
        return self._read(Forecast, "forecasts", query)

    def rank(
        self,
        candidates: Union[Sequence[Candidate], Mapping[str, Candidate]],
        *,
        application: str = "",
        quantile: float = 0.9,
        at: Optional[datetime] = None,
        horizon_seconds: Optional[float] = None,
    ) -> Ranking:
        """Return at most 1,000 candidates, the best first.

        A candidate is the name of a series or, of *application*, a mapping of roles to resources, or all
        resources. Where *candidates* are a mapping, its keys come back with the answer.
        """
        question: dict[str, Any] = {"candidates": _candidates(candidates), "quantile": quantile}
        question |= {"application": application} if application else {}
        question |= {"at": _rfc3339("at", at)} if at else {}
        question |= {"horizon_seconds": horizon_seconds} if horizon_seconds is not None else {}
        return self._parsed(Ranking, self._call("POST", "forecasts/rank", document=question))

    def tell(
        self,
        forecast: int,
        job: str,
        outcome: str,
        *,
        started_at: datetime,
        ended_at: datetime,
        seconds: Optional[float] = None,
    ) -> Told:
        """Report that *job*, for which *forecast* was asked, has ``passed`` or ``failed``.

        *seconds* is the actual duration of what was forecast, by default the time from start to end.
        """
        return self._tell(_outcome(forecast, job, outcome, started_at, ended_at, seconds))

    def tell_all(self, jobs: Iterable[Ended]) -> list[OutcomeReceipt]:
        """Report how *jobs* ended, 1,000 in a request; return a receipt for each, in their order.

        A refused outcome keeps no other one from being stored.
        """
        messages = [
            _outcome(each.forecast, each.job, each.outcome, each.started_at, each.ended_at, each.seconds)
            for each in jobs
        ]
        batches = (messages[at : at + MOST_OUTCOMES] for at in range(0, len(messages), MOST_OUTCOMES))
        return [receipt for batch in batches for receipt in self._tell_all(batch)]

    def tell_later(
        self,
        forecast: int,
        job: str,
        outcome: str,
        *,
        started_at: datetime,
        ended_at: datetime,
        seconds: Optional[float] = None,
    ) -> Delivery:
        """Do as ``tell``, by way of the spool: an outcome that cannot be delivered now waits there."""
        message = _outcome(forecast, job, outcome, started_at, ended_at, seconds)
        self._required_spool().add("outcome", _json(message, "outcome"))
        return self.deliver()

    def sites(self, *, state: str = "", limit: Optional[int] = None) -> Iterator[Site]:
        """Yield the sites, at most *limit*, in *state* only if it is given. Each page is a call."""
        return self._listed(Site, "sites", {"state": state}, limit)

    def resources(
        self, *, site: str = "", state: str = "", limit: Optional[int] = None
    ) -> Iterator[Resource]:
        """Yield the resources, of *site* and in *state* only if they are given."""
        return self._listed(Resource, "resources", {"site": site, "state": state}, limit)

    def series(self, *, site: str = "", suite: str = "", limit: Optional[int] = None) -> Iterator[Series]:
        """Yield the series, of *site* and of *suite* only if they are given."""
        return self._listed(Series, "series", {"site": site, "suite": suite}, limit)

    def runs(
        self,
        *,
        series: str = "",
        site: str = "",
        suite: str = "",
        state: str = "",
        start: Optional[datetime] = None,
        end: Optional[datetime] = None,
        limit: Optional[int] = None,
    ) -> Iterator[Run]:
        """Yield the runs with slots from *start* until before *end*, the newest first.

        Without *state*, these are the runs that have ended.
        """
        query = {"series": series, "site": site, "suite": suite, "state": state}
        times = {"start": _rfc3339("start", start), "end": _rfc3339("end", end)}
        return self._listed(Run, "runs", {**query, **times}, limit)

    def run(self, id: str) -> Run:
        return self._read(Run, f"runs/{_quoted(id)}", {})

    def send(self, reports: Iterable[Report]) -> Delivery:
        """Send *reports*: objects, or their JSON. With a spool, they wait there until gridcast has them.

        A report without a slot and a ``rid`` gets a ``rid``, so that it counts once however often this call
        sends it; give it one of your own if you repeat the call.

        Raises:
            InvalidInput: a report is no JSON object.
            SpoolError: the spool has no room; what it has of the reports is delivered by a later call.
            GridcastError: without a spool, as of ``ask``.
        """
        receipts: list[Receipt] = []
        deadline = _Deadline(self.timeout_seconds)
        for chunk in _chunks(_report(number, report) for number, report in enumerate(reports)):
            if self.spool is None:
                receipts += self._send(chunk, deadline)
            else:
                self.spool.add("reports", b"\n".join([*chunk, b""]))
        return Delivery(tuple(receipts)) if self.spool is None else self.deliver()

    def deliver(self) -> Delivery:
        """Deliver what waits in the spool, for as long as the time limit of a call.

        The first failure that is not about a single report or outcome ends the delivery, as its ``error``.
        """
        spool, deadline = self._required_spool(), _Deadline(self.timeout_seconds)
        receipts: list[Receipt] = []
        told: list[Told] = []
        not_told: list[str] = []
        error = None
        try:
            with spool.locked(self.timeout_seconds, self._sleep):
                self._deliver_reports(spool, receipts, deadline)
                self._deliver_outcomes(spool, told, not_told, deadline)
        except GridcastError as failure:
            error = failure
        return Delivery(tuple(receipts), tuple(told), tuple(not_told), len(spool.waiting()), error)

    def _deliver_reports(self, spool: Spool, receipts: list[Receipt], deadline: _Deadline) -> None:
        for batch in _batches(spool):
            sent = self._send([line for _, lines in batch for line in lines], deadline)
            position = 0
            for path, lines in batch:
                own = sent[position : position + len(lines)]
                position += len(lines)
                spool.refuse(
                    path.name,
                    [(line, each.error) for line, each in zip(lines, own) if not each.accepted],
                )
                spool.remove(path)
            receipts += sent

    def _deliver_outcomes(
        self, spool: Spool, told: list[Told], not_told: list[str], deadline: _Deadline
    ) -> None:
        def refuse(path: Path, body: bytes, error: str) -> None:
            spool.refuse(path.name, [(body, error)])
            spool.remove(path)
            not_told.append(error)

        paths = spool.waiting("outcome")
        for at in range(0, len(paths), MOST_OUTCOMES):
            batch: list[tuple[Path, bytes, Any]] = []
            for path in paths[at : at + MOST_OUTCOMES]:
                body = spool.read(path)
                try:
                    batch.append((path, body, dict(json.loads(body))))
                except (TypeError, ValueError) as error:  # a damaged file
                    refuse(path, body, str(error))
            receipts = self._tell_all([message for _, _, message in batch], deadline)
            for (path, body, _), receipt in zip(batch, receipts):
                if receipt.stored is None:
                    refuse(path, body, f"{receipt.code}: {receipt.error}")
                else:
                    spool.remove(path)
                    told.append(receipt.stored)

    def _required_spool(self) -> Spool:
        if self.spool is None:
            raise InvalidInput("this needs a spool: give a directory, or set GRIDCAST_SPOOL")
        return self.spool

    def _tell_all(
        self, messages: Sequence[Any], deadline: Optional[_Deadline] = None
    ) -> list[OutcomeReceipt]:
        """Return a receipt for each message."""

        def tell(part: Sequence[Any]) -> Sequence[OutcomeReceipt]:
            answer = self._call("POST", "forecasts/outcomes", document=list(part), deadline=deadline)
            return self._parsed(_OutcomeReceipts, answer).outcomes

        return _in_halves(messages, tell, lambda error: OutcomeReceipt(None, error.code, str(error)))

    def _tell(self, message: Mapping[str, Any]) -> Told:
        document = dict(message)
        path = f"forecasts/{_quoted(str(document.pop('forecast')))}/outcome"
        return self._parsed(Told, self._call("POST", path, document=document))

    def _send(self, lines: Sequence[bytes], deadline: _Deadline) -> list[Receipt]:
        """Return a receipt for each line."""
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}

        def send(part: Sequence[bytes]) -> Sequence[Receipt]:
            body = gzip.compress(b"\n".join(part), 5)
            try:
                answer = self._call("POST", "reports", body=body, headers=headers, deadline=deadline)
            except Refused as error:
                if "receipts" not in error.fields:  # else every report was refused
                    raise
                answer = error.fields
            return self._parsed(_Receipts, answer).receipts

        def refused(error: Refused) -> Receipt:
            return Receipt(None, accepted=False, duplicate=False, conflict=False, error=error.detail)

        return _in_halves(lines, send, refused)

    def _listed(
        self, kind: type[T], noun: str, query: Mapping[str, Any], limit: Optional[int]
    ) -> Iterator[T]:
        cursor, left = "", limit
        while left is None or left > 0:
            page = {"limit": PAGE if left is None else min(left, PAGE), "cursor": cursor}
            answer = self._call("GET", noun, query={**query, **page})
            items: tuple[T, ...] = self._parsed(tuple[kind, ...], _field(answer, noun))  # type: ignore[valid-type]  # at run time
            yield from items[:left]
            left = None if left is None else left - len(items)
            cursor = self._parsed(str, _field(answer, "next") or "")
            if not cursor:
                return

    def _read(self, kind: type[T], path: str, query: Mapping[str, Any]) -> T:
        return self._parsed(kind, self._call("GET", path, query=query))

    def _parsed(self, kind: type[T], answer: Any) -> T:
        try:
            parsed: T = _decoded(kind, answer, "")
            return parsed
        except _Unfit as error:
            raise UnusableAnswer(
                f"{self.url}: {error}; check that the URL is that of gridcast, and its version"
            ) from None

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, Any]] = None,
        document: Optional[Union[Mapping[str, Any], Sequence[Any]]] = None,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        deadline: Optional[_Deadline] = None,
    ) -> Any:
        """Return the JSON of the answer, after as many tries as are useful within the time limit."""
        if document is not None:
            body, headers = _json(document, path), {"Content-Type": "application/json"}
        given = {name: value for name, value in (query or {}).items() if value not in (None, "", [])}
        url = f"{self.url}/api/v1/{path}" + (f"?{urllib.parse.urlencode(given, doseq=True)}" if given else "")
        identity = uuid.uuid4().hex
        every = {"Accept": "application/json", "User-Agent": self._agent, "X-Request-ID": identity}
        wait_seconds = min(MOST_WAIT_SECONDS, int(self.timeout_seconds // 4))
        if path in _WAITED_FOR and wait_seconds:  # the server waits for a first forecast: RFC 7240
            every["Prefer"] = f"wait={wait_seconds}"
        if self._token:
            every["Authorization"] = f"Bearer {self._token}"
        request = Request(method, url, {**every, **(headers or {})}, body)
        deadline = deadline or _Deadline(self.timeout_seconds)
        for tried in range(1, self.tries + 1):
            try:
                return _document(self._transport(request, deadline.left_seconds()))
            except GridcastError as error:
                pause = self._pause_seconds(error, tried)
                is_last = not error.again or tried == self.tries or isinstance(error, TimedOut)
                if is_last or pause >= deadline.remaining_seconds:
                    what = f"{method} {self.url}/api/v1/{path}"
                    error.args = (f"{what}: {error}{_tries(tried)} (request {identity})",)
                    raise
            self._sleep(pause)
        raise AssertionError("a call has at least one try")

    def _pause_seconds(self, error: GridcastError, tried: int) -> float:
        """Return the pause before the next try: what the server asks for, and a random part on top."""
        asked = error.retry_after_seconds if isinstance(error, Overloaded) else None
        most = min(FIRST_PAUSE_SECONDS * 2.0 ** (tried - 1), MOST_PAUSE_SECONDS)
        return (asked or 0.0) + self._jitter() * most


def _field(answer: Any, name: str) -> Any:
    return answer.get(name) if isinstance(answer, dict) else None


@dataclass(frozen=True)
class _Receipts:
    receipts: tuple[Receipt, ...]


@dataclass(frozen=True)
class _OutcomeReceipts:
    outcomes: tuple[OutcomeReceipt, ...]


def _in_halves(
    items: Sequence[Any], send: Callable[[Sequence[Any]], Sequence[T]], refused: Callable[[Refused], T]
) -> list[T]:
    """Return the receipt of each of *items*, which *send* sends in one request.

    A request that is refused as a whole is sent in halves; *refused* makes the receipt of a single item.
    """
    if not items:
        return []
    try:
        receipts = send(items)
    except Refused as error:
        if error.status not in {400, 413, 422}:
            raise
        if len(items) == 1:
            return [refused(error)]
        half = len(items) // 2
        return _in_halves(items[:half], send, refused) + _in_halves(items[half:], send, refused)
    if len(receipts) != len(items):
        raise UnusableAnswer(f"expected {len(items)} receipts, got {len(receipts)}")
    return list(receipts)


_NO_FORECAST = {"too_few", "segment_changed", "stale", "site_down"}
_TEMPORARY = {408, 425, 429}  # and all from 500 on


def _document(response: Response) -> Any:
    """Return the JSON in *response*. Raises GridcastError unless its status is 2xx."""
    if 300 <= response.status < 400:
        raise UnusableAnswer(
            f"redirected to {_printable(response.headers.get('location', 'nowhere'))}: a token is sent to no"
            " other address; give the URL at which gridcast itself answers"
        )
    try:
        document = json.loads(response.body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        document = None
    if 200 <= response.status < 300:
        if document is None:
            start = _printable(response.body[:60].decode("utf-8", "replace"))
            raise UnusableAnswer(f"expected JSON, got {start!r}; check that the URL is that of gridcast")
        return document
    raise _problem(response, document if isinstance(document, dict) else {})


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _problem(response: Response, fields: Mapping[str, Any]) -> Problem:
    status = response.status
    detail = _printable(fields.get("detail", http.client.responses.get(status, "")))
    message = f"{status} {fields['code']}: {detail}" if "code" in fields else f"{status} {detail}"
    if status in _TEMPORARY or status >= 500:
        overloaded = Overloaded(message, status, fields)
        overloaded.retry_after_seconds = _retry_after(response.headers.get("retry-after", ""))
        return overloaded
    if status in {401, 403}:
        return NotAllowed(message, status, fields)
    kind = NoForecast if fields.get("code") in _NO_FORECAST else Refused
    return kind(message, status, fields)


def _retry_after(text: str) -> Optional[float]:
    """Return the seconds of a Retry-After header, at most an hour; None if it has none."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MOST_RETRY_SECONDS)
    try:
        wait = (parsedate_to_datetime(text) - datetime.now(timezone.utc)).total_seconds()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return min(max(wait, 0.0), MOST_RETRY_SECONDS)


def _tries(tried: int) -> str:
    return "" if tried == 1 else f"; tried {tried} times"


# What callers give

_HEADER = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_MOST_TOKEN_BYTES = 4096


def _checked_url(url: str, *, plain_http: bool) -> str:
    """Return *url* without a slash at its end. The text may have a password: errors do not show it."""
    expected = "expected a URL such as https://grid.example.org (an argument, or GRIDCAST_URL)"
    try:
        parts = urllib.parse.urlsplit(url.strip())
        is_url = parts.scheme in {"http", "https"} and bool((parts.hostname or "").encode("idna"))
        is_url = is_url and (parts.port or 1) > 0
    except ValueError:  # UnicodeError is one
        is_url = False
    if not is_url or not _HEADER.fullmatch(url):
        raise InvalidInput(f"{expected}, got {'another text' if url else 'none'}")
    if parts.username or parts.query or parts.fragment:
        raise InvalidInput(f"{expected}, got one with a user, a query or a fragment")
    if parts.scheme == "http" and not plain_http and not _is_loopback(parts.hostname):
        raise InvalidInput(
            f"{url}: without TLS anyone on the way could read the token: give the https:// URL, or allow"
            " plain HTTP"
        )
    return urllib.parse.urlunsplit(
        (parts.scheme, parts.netloc, parts.path.rstrip("/").replace(" ", "%20"), "", "")
    )


def _token(token: Optional[str], file: Union[str, Path, None], environ: Mapping[str, str]) -> str:
    """Return the first that is given: *token*, that in *file*, that of the environment; empty: none is."""
    if not token and not file:
        token, file = environ.get("GRIDCAST_TOKEN"), environ.get("GRIDCAST_TOKEN_FILE")
    where = "the token"
    if not token and file:
        token, where = _token_in(Path(file)), f"the token in {file}"
    if token and not _TOKEN.fullmatch(token):
        raise InvalidInput(f"{where} is none: expected printable ASCII without spaces")
    return token or ""


def _token_in(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe would block
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput(f"the token file {file} is not a regular file")
            _check_private(status, f"the token file {file}", stat.S_IRWXG | stat.S_IRWXO)
            return os.read(descriptor, _MOST_TOKEN_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InvalidInput(f"cannot read the token file {file}: {error.strerror or error}") from None


def _check_private(status: os.stat_result, what: str, forbidden: int) -> None:
    """Raise InvalidInput if another user owns the file, or if its mode has a *forbidden* bit."""
    if not hasattr(os, "geteuid"):  # Windows has other permissions
        return
    if status.st_uid not in {0, os.geteuid()}:
        raise InvalidInput(f"{what} belongs to the user {status.st_uid}: it must be yours or root's")
    if status.st_mode & forbidden:
        raise InvalidInput(
            f"{what} is open to other users ({stat.filemode(status.st_mode)}): run chmod go= on it"
        )


def _rfc3339(name: str, time: Optional[datetime]) -> Optional[str]:
    if time is not None and time.tzinfo is None:
        raise InvalidInput(f"{name}: expected a time with its zone, got {time.isoformat()}")
    return time.astimezone(timezone.utc).isoformat() if time else None


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _json(document: Union[Mapping[str, Any], Sequence[Any]], what: str) -> bytes:
    try:
        return json.dumps(document, separators=(",", ":"), allow_nan=False, default=_time_in_json).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what}: cannot be written as JSON: {error}") from None


def _time_in_json(value: object) -> Optional[str]:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return _rfc3339("a time", value)


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _candidates(candidates: Union[Sequence[Candidate], Mapping[str, Candidate]]) -> list[dict[str, Any]]:
    if isinstance(candidates, str):
        raise InvalidInput("candidates: expected several, got a text")
    if isinstance(candidates, collections.abc.Mapping):
        return [{"key": key, **_candidate(each)} for key, each in candidates.items()]
    return [_candidate(each) for each in candidates]


def _candidate(candidate: Candidate) -> dict[str, Any]:
    if isinstance(candidate, str):
        return {"series": candidate}
    if isinstance(candidate, collections.abc.Mapping):
        return {"roles": {role: _listed(names) for role, names in candidate.items()}}
    return {"resources": list(candidate)}


def _outcome(
    forecast: int, job: str, outcome: str, started_at: datetime, ended_at: datetime, seconds: Optional[float]
) -> dict[str, Any]:
    if outcome not in {"passed", "failed"}:
        raise InvalidInput(f"outcome: expected passed or failed, got {outcome!r}")
    times = {"started_at": _rfc3339("started_at", started_at), "ended_at": _rfc3339("ended_at", ended_at)}
    return {"forecast": forecast, "job": job, "outcome": outcome, **times, "seconds": seconds}


def _report(number: int, report: Report) -> bytes:
    """Return *report* as JSON on one line; one without a slot has a ``rid`` and a time."""
    line, document = b"", report
    if isinstance(report, (str, bytes)):
        try:
            line = (report.encode() if isinstance(report, str) else report).strip()
            document = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"reports[{number}]: not JSON: {error}") from None
    if not isinstance(document, collections.abc.Mapping):
        raise InvalidInput(f"reports[{number}]: expected a JSON object, got {_printable(document)[:60]}")
    added: dict[str, Any] = {}
    if not document.keys() & {"slot", "rid"}:
        added["rid"] = uuid.uuid4().hex
    if "seconds" in document and not document.keys() & {"slot", "started_at", "ended_at"}:
        added["ended_at"] = _rfc3339("ended_at", datetime.now(timezone.utc))
    if added or not line or b"\n" in line:
        return _json({**document, **added}, f"reports[{number}]")
    return line  # the same bytes again are a duplicate


def _chunks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield *lines* in lists that one request may have."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        if chunk and (len(chunk) == MOST_REPORTS or size + len(line) > MOST_REPORT_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += len(line) + 1
    if chunk:
        yield chunk


def _batches(spool: Spool) -> Iterator[list[tuple[Path, list[bytes]]]]:
    """Yield the files of reports that wait, with their lines, in lists that one request may have."""
    batch: list[tuple[Path, list[bytes]]] = []
    count = size = 0
    for path in spool.waiting("reports"):
        body = spool.read(path)
        lines = [line for line in body.split(b"\n") if line]
        if batch and (count + len(lines) > MOST_REPORTS or size + len(body) > MOST_REPORT_BYTES):
            yield batch
            batch, count, size = [], 0, 0
        batch.append((path, lines))
        count, size = count + len(lines), size + len(body)
    if batch:
        yield batch
