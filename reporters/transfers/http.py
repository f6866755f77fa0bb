"""WebDAV over HTTPS: at the reporter's request, one server copies the file from or to the other server.

The protocol is HTTP-TPC of the WLCG. The reporter sends COPY to the active server, with one token for the
active server and one token for the passive server. The active server is the server of the target in *mode*
"pull", and the server of the source in *mode* "push". The body of the response contains the result
(``reporters.tpc``), which the HTTP status does not tell.
"""

from __future__ import annotations

import contextlib
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from probes.base import InvalidParameters
from probes.grid import Capabilities, CopyOptions, Transferred
from reporters import https
from reporters.base import CannotCopy, Credential, End, TookTooLong
from reporters.copying import CheckedCopy
from reporters.credentials.proxy import ProxyCertificate
from reporters.credentials.token import BearerToken
from reporters.endpoints import Endpoint
from reporters.tpc import CopyReport

_PORT = 443
_STALL_SECONDS = 180.0
_CHECKSUM = "adler32"
_REFUSAL_BYTES = 65536
_DIGEST = re.compile(rf"\b{_CHECKSUM}=(?P<sum>[0-9a-f]{{1,8}})(?![0-9a-z])", re.ASCII | re.IGNORECASE)
_STATUS = re.compile(r"\bstatus(?: code)?:? (?P<status>\d{3})\b", re.ASCII | re.IGNORECASE)
# Messages of a server about the other one.
_ABOUT_OTHER = re.compile(
    r"remote|connect|resolve|status|response|peer|ssl|tls|certificate|time|too slow|partial file|nothing",
    re.IGNORECASE,
)
_EXPLANATIONS = {
    401: "no token that is valid at {name}",
    403: "no token that is valid at {name}",
    404: "no such file at {name}",
    405: "{name} does not support third-party copies",
    412: "the file already exists at {name}",
    501: "{name} does not support third-party copies",
    502: "no answer from {name}",
    503: "{name} is unavailable",
    504: "no answer from {name}",
    507: "no space left at {name}",
}


class Transfer(CheckedCopy):
    """Copies by WebDAV over HTTPS.

    Options of either end:
        host, port, directory: the server, as in ``Endpoint``.
        token_file: the bearer token.
        proxy_file: a client certificate.
        ca_file, ca_directory: the trusted authorities (default: the system's).

    Options of the target, or else of the source:
        mode: "pull" or "push"; only "pull" supports several streams.
        stall_seconds: time without progress after which a copy fails.
    """

    capabilities = Capabilities(third_party=True, parallel_streams=True, server_checksum=True)
    option_types: ClassVar[Mapping[str, str]] = {
        "ca_directory": "str",
        "ca_file": "str",
        "directory": "str",
        "host": "str",
        "mode": "str",
        "port": "int",
        "proxy_file": "str",
        "stall_seconds": "float",
        "token_file": "str",
    }

    def __init__(self, source: End, target: End) -> None:
        super().__init__(source, target)
        options = {**source.options, **target.options}
        self._pulls = _mode(options.get("mode", "pull"), target) == "pull"
        self._stall_seconds = _positive(options.get("stall_seconds", _STALL_SECONDS), target)
        self._from, self._to = _Server(source), _Server(target)

    def credentials(self) -> Sequence[Credential]:
        return (*self._from.credentials(), *self._to.credentials())

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        until = time.monotonic() + timeout_seconds
        size_bytes = self.source_bytes(source_path)
        self.check_directory(partial_path)
        streams = options.streams if self._pulls else 1
        began = time.monotonic()
        try:
            self._copy(source_path, partial_path, size_bytes, streams, until)
            seconds = time.monotonic() - began
            if options.server_checksum:
                self._compare_checksums(source_path, partial_path, https.Limit(until))
        except https.RequestTimedOut:
            raise TookTooLong(
                f"the copy from {self._from.name} to {self._to.name} "
                f"ran longer than {timeout_seconds:g} s and was stopped",
                resource=self._to.name,
            ) from None
        return Transferred(size_bytes, seconds, streams=streams)

    def _copy(self, source_path: str, partial_path: str, size_bytes: int, streams: int, until: float) -> None:
        pulled = {"Source": self._from.url(source_path), "X-Number-Of-Streams": str(streams)}
        if self._pulls:
            active, path, passive, direction = self._to, partial_path, self._from, pulled
        else:
            active, path, passive = self._from, source_path, self._to
            direction = {"Destination": self._to.url(partial_path)}
        authorizations = [server.authorization() for server in (active, passive)]
        headers = {
            **direction,
            "Overwrite": "T",
            "Credential": "none",  # use the token, request no proxy
            "User-Agent": f"gridcast {self.source.shell.label}",
            **authorizations[0],
            **{f"TransferHeader{name}": value for name, value in authorizations[1].items()},
        }
        with active.request("COPY", path, headers, https.Limit(until, self._stall_seconds)) as response:
            secrets = [values["Authorization"].partition(" ")[2] for values in authorizations if values]
            report = self._followed(response, passive, size_bytes, CopyReport(secrets))
        try:
            _judge(response, report, active, passive)
        except CannotCopy:
            # A pushing server may only know that the other end closed the connection.
            cause = self.write_error(partial_path) if report.failure else ""
            if cause:
                raise self._to.failed(f"{cause}: {report.failure}", report.tail) from None
            raise

    def _followed(
        self, response: https.HttpsResponse, passive: _Server, size_bytes: int, report: CopyReport
    ) -> CopyReport:
        """Read the active server's progress report on a file of *size_bytes* to its end; return *report*.

        Raises:
            CannotCopy: the copy makes no progress; the *passive* server is at fault.
        """
        read_bytes = 0
        arrived_bytes, grew = 0, time.monotonic()
        for piece in response.pieces():
            report.feed(piece)
            read_bytes += len(piece)
            if not response.is_success and read_bytes > _REFUSAL_BYTES:
                break
            if report.transferred_bytes > arrived_bytes:
                arrived_bytes, grew = report.transferred_bytes, time.monotonic()
            # After the last byte, servers compare checksums.
            if arrived_bytes < size_bytes and time.monotonic() - grew > self._stall_seconds:
                progress = f"{arrived_bytes} of {size_bytes} bytes"
                raise passive.failed(f"stalled for {self._stall_seconds:g} s at {progress}", report.tail)
        report.end()
        return report

    def _compare_checksums(self, source_path: str, partial_path: str, limit: https.Limit) -> None:
        sent, arrived = self._from.checksum(source_path, limit), self._to.checksum(partial_path, limit)
        if sent != arrived:
            raise self._to.failed(
                f"the {_CHECKSUM} checksums of the servers differ: {sent} sent, {arrived} arrived"
            )


class _Server:
    """The WebDAV server of one end, with the credentials for it."""

    def __init__(self, end: End) -> None:
        options = end.options
        self.name = end.resource.name
        self._endpoint = Endpoint.of(end, _PORT)
        self._token = BearerToken(options["token_file"]) if options.get("token_file") else None
        self._proxy = ProxyCertificate.of(options) if options.get("proxy_file") else None
        self._trusted = {name: options.get(name, "") for name in ("ca_file", "ca_directory")}

    def credentials(self) -> Sequence[Credential]:
        return [credential for credential in (self._token, self._proxy) if credential is not None]

    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token.read()}"} if self._token else {}

    def url(self, path: str) -> str:
        return f"https://{self._endpoint.address}{urllib.parse.quote(self._endpoint.exported(path))}"

    @contextlib.contextmanager
    def request(
        self, method: str, path: str, headers: Mapping[str, str], limit: https.Limit
    ) -> Iterator[https.HttpsResponse]:
        """Send a request for *path*, a path at the resource; yield the response.

        Raises:
            https.RequestTimedOut: the limit was reached.
            CannotCopy: there was no response for another reason.
        """
        exported = self._endpoint.exported(path)
        try:
            context = https.tls_context(
                **self._trusted, certificate_file=self._proxy.file if self._proxy else ""
            )
            with https.request(self._endpoint, method, exported, headers, context, limit) as response:
                yield response
        except https.RequestTimedOut:
            raise
        except https.HttpsError as error:
            raise self.failed(f"{self._endpoint.address}: {error}") from None

    def checksum(self, path: str, limit: https.Limit) -> str:
        """Return the server's checksum of a file: 8 hexadecimal digits (RFC 3230).

        Raises:
            CannotCopy: the server returns no checksum.
        """
        headers = {"Want-Digest": _CHECKSUM, **self.authorization()}
        with self.request("HEAD", path, headers, limit) as response:
            digest = _DIGEST.search(response.header("Digest"))
        if response.status != 200 or digest is None:
            raise self.failed(
                f"{self.name} returns no {_CHECKSUM} checksum of {path}: HTTP status {response.status}"
            )
        return digest["sum"].lower().rjust(8, "0")

    def failed(self, reason: str, body_tail: str = "") -> CannotCopy:
        """Return the error with this server at fault."""
        return CannotCopy(reason, resource=self.name, stderr_tail=body_tail)


def _judge(response: https.HttpsResponse, report: CopyReport, active: _Server, passive: _Server) -> None:
    """Raise CannotCopy unless the active server reports success."""
    if not response.is_success:
        at_fault = passive if response.status in (502, 504) else active
        message = f"HTTP status {response.status} from {active.name}: {report.first_line or 'empty response'}"
        raise at_fault.failed(_explanation(response.status, at_fault) + message, report.tail)
    if report.failure:
        at_fault = passive if _ABOUT_OTHER.search(report.failure) else active
        status = _STATUS.search(report.failure)
        explanation = _explanation(int(status["status"]), at_fault) if status else ""
        raise at_fault.failed(explanation + report.failure, report.tail)
    if not report.succeeded and not response.is_empty:
        raise active.failed(f"{active.name} does not report the result: {report.last_line!r}", report.tail)


def _explanation(status: int, server: _Server) -> str:
    text = _EXPLANATIONS.get(status)
    return f"{text.format(name=server.name)}: " if text else ""


def _mode(mode: str, end: End) -> str:
    if mode not in ("pull", "push"):
        raise _invalid(end, f"mode: expected pull or push, got {mode!r}")
    return mode


def _positive(seconds: float, end: End) -> float:
    if not seconds > 0:
        raise _invalid(end, f"stall_seconds: expected a number > 0, got {seconds!r}")
    return float(seconds)


def _invalid(end: End, problem: str) -> InvalidParameters:
    return InvalidParameters(f"resource {end.resource.name}: transfer 'http': {problem}")
