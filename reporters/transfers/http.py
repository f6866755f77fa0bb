"""WebDAV over HTTPS: one server gets the file from the other, or puts it there, told to by the reporter.

HTTP-TPC of the WLCG: COPY goes to the target's server (*mode* "pull") or to the source's ("push"), with a
token of its own and one for the other server. How it went is in the body of the answer (``reporters.tpc``),
never in its status alone.
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
# What a server says of the other one, not of itself.
_OF_THE_OTHER = re.compile(
    r"remote|connect|resolve|status|response|peer|ssl|tls|certificate|time|too slow|partial file|nothing",
    re.IGNORECASE,
)
_IN_WORDS = {
    401: "no token that is valid at {name}",
    403: "no token that is valid at {name}",
    404: "no such file at {name}",
    405: "{name} makes no third-party copies",
    412: "the file is at {name} already",
    501: "{name} makes no third-party copies",
    502: "no answer for {name}",
    503: "{name} is not in service",
    504: "no answer for {name}",
    507: "no space left at {name}",
}


class Transfer(CheckedCopy):
    """Options of an end: *host*, *port* and *directory* (``Endpoint``); *token_file*; *proxy_file*, which
    says who we are by certificate; *ca_file* or *ca_directory*, whom to trust (else whom the system trusts).

    Of either end, the target's first: *mode*, "pull" or "push"; *stall_seconds*, after which a copy has
    failed of which nothing new was heard. Streams are for whoever pulls: one that pushes has one.
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
            active, path, passive, told = self._to, partial_path, self._from, pulled
        else:
            active, path, passive = self._from, source_path, self._to
            told = {"Destination": self._to.url(partial_path)}
        authorizations = [server.authorization() for server in (active, passive)]
        headers = {
            **told,
            "Overwrite": "T",
            "Credential": "none",  # it is to use the token, and to ask for no proxy
            "User-Agent": f"gridcast {self.source.shell.label}",
            **authorizations[0],
            **{f"TransferHeader{name}": value for name, value in authorizations[1].items()},
        }
        with active.asked("COPY", path, headers, https.Limit(until, self._stall_seconds)) as answer:
            secrets = [one["Authorization"].partition(" ")[2] for one in authorizations if one]
            report = self._followed(answer, passive, size_bytes, CopyReport(secrets))
        try:
            _judge(answer, report, active, passive)
        except CannotCopy:
            # One that pushes may know no more than that the other end has hung up.
            why = self.write_error(partial_path) if report.failure else ""
            if why:
                raise self._to.failed(f"{why}: {report.failure}", report.tail) from None
            raise

    def _followed(
        self, answer: https.Answer, passive: _Server, size_bytes: int, report: CopyReport
    ) -> CopyReport:
        """What the server has said in the end. Raises CannotCopy where it says that nothing moves."""
        heard_bytes = 0
        arrived_bytes, grew = 0, time.monotonic()
        for piece in answer.pieces():
            report.feed(piece)
            heard_bytes += len(piece)
            if not answer.is_fine and heard_bytes > _REFUSAL_BYTES:
                break
            if report.transferred_bytes > arrived_bytes:
                arrived_bytes, grew = report.transferred_bytes, time.monotonic()
            # With the last byte there, servers compare checksums.
            if arrived_bytes < size_bytes and time.monotonic() - grew > self._stall_seconds:
                so_far = f"{arrived_bytes} of {size_bytes} bytes"
                raise passive.failed(f"stalled for {self._stall_seconds:g} s at {so_far}", report.tail)
        report.end()
        return report

    def _compare_checksums(self, source_path: str, partial_path: str, limit: https.Limit) -> None:
        sent, arrived = self._from.checksum(source_path, limit), self._to.checksum(partial_path, limit)
        if sent != arrived:
            raise self._to.failed(
                f"the {_CHECKSUM} checksums of the servers differ: {sent} was sent, {arrived} arrived"
            )


class _Server:
    """The server of one end."""

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
    def asked(
        self, method: str, path: str, headers: Mapping[str, str], limit: https.Limit
    ) -> Iterator[https.Answer]:
        """Its answer while in this context. Raises CannotCopy, https.RequestTimedOut."""
        exported = self._endpoint.exported(path)
        try:
            context = https.context_of(
                **self._trusted, certificate_file=self._proxy.file if self._proxy else ""
            )
            with https.asked(self._endpoint, method, exported, headers, context, limit) as answer:
                yield answer
        except https.RequestTimedOut:
            raise
        except https.HttpsError as error:
            raise self.failed(f"{self._endpoint.address}: {error}") from None

    def checksum(self, path: str, limit: https.Limit) -> str:
        """The checksum of a file as the server has it, 8 hexadecimal digits (RFC 3230). Raises CannotCopy."""
        headers = {"Want-Digest": _CHECKSUM, **self.authorization()}
        with self.asked("HEAD", path, headers, limit) as answer:
            digest = _DIGEST.search(answer.header("Digest"))
        if answer.status != 200 or digest is None:
            raise self.failed(
                f"{self.name} tells no {_CHECKSUM} checksum of {path}: HTTP status {answer.status}"
            )
        return digest["sum"].lower().rjust(8, "0")

    def failed(self, said: str, body_tail: str = "") -> CannotCopy:
        """The error for what this server has said, or has not done."""
        return CannotCopy(said, resource=self.name, stderr_tail=body_tail)


def _judge(answer: https.Answer, report: CopyReport, active: _Server, passive: _Server) -> None:
    """Raise CannotCopy unless the server says that it has copied."""
    if not answer.is_fine:
        at_fault = passive if answer.status in (502, 504) else active
        said = f"HTTP status {answer.status} from {active.name}: {report.first_line or 'no more'}"
        raise at_fault.failed(_in_words(answer.status, at_fault) + said, report.tail)
    if report.failure:
        at_fault = passive if _OF_THE_OTHER.search(report.failure) else active
        status = _STATUS.search(report.failure)
        words = _in_words(int(status["status"]), at_fault) if status else ""
        raise at_fault.failed(words + report.failure, report.tail)
    if not report.succeeded and not answer.is_empty:
        raise active.failed(f"{active.name} does not say how it went: {report.last_line!r}", report.tail)


def _in_words(status: int, server: _Server) -> str:
    words = _IN_WORDS.get(status)
    return f"{words.format(name=server.name)}: " if words else ""


def _mode(mode: str, end: End) -> str:
    if mode not in ("pull", "push"):
        raise _unfit(end, f"mode is pull or push, not {mode!r}")
    return mode


def _positive(seconds: float, end: End) -> float:
    if not seconds > 0:
        raise _unfit(end, f"stall_seconds is a number over 0, not {seconds!r}")
    return float(seconds)


def _unfit(end: End, why: str) -> InvalidParameters:
    return InvalidParameters(f"resource {end.resource.name}: transfer 'http': {why}")
