"""GridFTP: globus-url-copy at the reporter makes the servers of both ends copy from one to the other.

The exit status of globus-url-copy is 1 for every error. Its debug log of the control connections tells which
server was at fault and how often the copy was restarted.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from probes.base import InvalidParameters, ProbeFailed
from probes.grid import Capabilities, Completed, CopyOptions, Transferred
from reporters.base import (
    CannotConnect,
    CannotCopy,
    ConnectionLost,
    Credential,
    CredentialUnfit,
    End,
    describe_exit,
)
from reporters.connections import is_host
from reporters.copying import ClientProgram
from reporters.credentials.proxy import ProxyCertificate
from reporters.error_lines import decisive_line, tail
from reporters.globus import explain

DEFAULT_PORT = 2811
_CHECKSUM = "ADLER32"  # supported by every server, at a tenth of the cost of the others
_STARTED = re.compile(r"^debug: starting to transfer ", re.MULTILINE)
_FAULT = re.compile(r"^debug: fault on connection to (?P<url>\S+?):?(?= |$)", re.MULTILINE)
_ERROR = re.compile(r"^error: .*\Z", re.MULTILINE | re.DOTALL)
_OFFLINE = re.compile(r"^42\d[ -](?P<reason>.*)", re.MULTILINE)
# One server's report that the other closed the connection.
_OTHER_LOST = re.compile(r"^500-.*System error in \w+: (Connection reset by peer|Broken pipe)", re.MULTILINE)
_LOST = re.compile(r"an end-of-file was reached|Connection reset by peer|Broken pipe|operation was aborted")
_FILE = re.compile(r"(?P<what>Unable to open file .*)\n\S*globus_xio: System error in \w+: (?P<reason>.*)")
_SYSTEM = re.compile(r"System error in (?P<what>\w+): (?P<reason>.*)")
_CHECKSUMS = re.compile(
    r"checksum verification failure.*\n\s*got '(?P<got>.*)',\s*expected '(?P<expected>.*)'"
)


@dataclass(frozen=True)
class CopyLog:
    """The log of globus-url-copy.

    Attributes:
        error: the error, empty if the copy succeeded.
        at_fault: URL of the server at fault, empty without an error.
        attempts: how often the copy was started.
    """

    error: str
    at_fault: str
    attempts: int


class Transfer(ClientProgram):
    """Copies by GridFTP.

    A block size is passed to globus-url-copy, but the servers choose another block size for copies between
    them.

    Options of either end:
        host, port: address of the server (default port: 2811).
        subject: distinguished name in the server's certificate if the certificate is not for the host name.
        proxy_file, ca_directory: the proxy and the authorities (default: the paths of Globus).

    Options of the target:
        retries: how often globus-url-copy may resume the copy (default: 0).
    """

    capabilities = Capabilities(third_party=True, parallel_streams=True, server_checksum=True)
    option_types: ClassVar[Mapping[str, str]] = {
        "ca_directory": "str",
        "host": "str",
        "path": "str",
        "port": "int",
        "proxy_file": "str",
        "retries": "int",
        "subject": "str",
    }

    def __init__(self, source: End, target: End) -> None:
        super().__init__(source, target)
        self._proxies = [ProxyCertificate.of(end.options) for end in (source, target)]
        self._retries = target.options.get("retries", 0)
        for end in (source, target):
            if not is_host(end.options.get("host")):
                raise InvalidParameters(
                    f"resource {end.resource.name}: transfer 'gridftp': the host is missing or invalid"
                )

    def credentials(self) -> Sequence[Credential]:
        source, target = self._proxies
        return [source] if source.environment == target.environment else [source, target]

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), **self._proxies[1].environment}

    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        return [
            "globus-url-copy",
            "-dbg",
            *(["-p", str(options.streams)] if options.streams > 1 else []),
            *(["-bs", str(options.block_bytes)] if options.block_bytes else []),
            *(["-verify-checksum", "-checksum-alg", _CHECKSUM] if options.server_checksum else []),
            *(["-rst", "-rst-retries", str(self._retries)] if self._retries else []),
            *_named("-ss", self.source),
            *_named("-ds", self.target),
            *self._delegated(),
            url(self.source, source_path),
            url(self.target, target_path),
        ]

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        try:
            return super().send(source_path, partial_path, options, timeout_seconds)
        except ConnectionLost as error:
            # A target with a full disk closes the connection, and its own message may come too late.
            cause = self.write_error(partial_path) if error.resource == self.target.resource.name else ""
            if not cause:
                raise
            raise CannotCopy(
                f"{cause} ({error.message})",
                resource=error.resource,
                exit_status=error.exit_status,
                stderr_tail=error.stderr_tail,
            ) from None

    def judge(self, done: Completed, size_bytes: int, options: CopyOptions) -> Transferred:
        log = parse(done.stderr)
        if done.returncode == 0 and not log.error:
            return Transferred(size_bytes, done.seconds, options.streams, max(0, log.attempts - 1))
        raise self._failure(log, done)

    def _delegated(self) -> list[str]:
        """Return the options for the proxies of the two ends; empty if both ends use the same proxy."""
        source, target = (proxy.file for proxy in self._proxies)
        return [] if source == target else ["-src-cred", source, "-dst-cred", target]

    def _failure(self, log: CopyLog, done: Completed) -> ProbeFailed:
        end = self._at_fault(log)
        error, description = explained(log.error, _address(end) if end else "a server")
        return error(
            description or decisive_line(done.stderr) or describe_exit(done.returncode),
            resource=end.resource.name if end and error is not CredentialUnfit else None,
            exit_status=done.returncode,
            stderr_tail=tail(log.error or done.stderr),
        )

    def _at_fault(self, log: CopyLog) -> End | None:
        reporting = [
            end for end in (self.source, self.target) if log.at_fault.startswith(f"gsiftp://{_address(end)}/")
        ]
        if reporting and _OTHER_LOST.search(log.error):
            return self.source if reporting[0] is self.target else self.target
        return reporting[0] if reporting else self.target if "checksum" in log.error else None


def parse(stderr: str) -> CopyLog:
    """Parse *stderr* of ``globus-url-copy -dbg``."""
    text = stderr.replace("\r", "")
    error, faults = _ERROR.search(text), _FAULT.findall(text)
    return CopyLog(
        error=error[0].strip() if error else "",
        at_fault=faults[-1] if faults else "",
        attempts=len(_STARTED.findall(text)),
    )


def explained(text: str, where: str) -> tuple[type[ProbeFailed], str]:
    """Return the class and a description of the error in *text*; *where* names the server at fault."""
    explained_error = explain(text)
    if explained_error is not None:
        is_server = explained_error.error is CannotConnect
        description = explained_error.text
        return (
            explained_error.error,
            f"cannot connect to {where}: {description}" if is_server else description,
        )
    offline, checksums = _OFFLINE.search(text), _CHECKSUMS.search(text)
    if offline:
        return CannotConnect, f"cannot connect to {where}: {offline['reason']}"
    if checksums:
        return CannotCopy, f"checksums differ: {checksums['got']} arrived, not {checksums['expected']}"
    lost = _LOST.search(text)
    if lost:
        return ConnectionLost, f"the connection to {where} was lost: {lost[0]}"
    system = _FILE.search(text) or _SYSTEM.search(text)
    return CannotCopy, f"{system['what']}: {system['reason']}" if system else decisive_line(text)


def url(end: End, path: str) -> str:
    """Return the URL of a file, with special characters encoded."""
    return f"gsiftp://{_address(end)}{urllib.parse.quote(os.fsencode(path))}"


def _address(end: End) -> str:
    host = str(end.options["host"])
    return f"{f'[{host}]' if ':' in host else host}:{end.options.get('port', DEFAULT_PORT)}"


def _named(option: str, end: End) -> list[str]:
    subject = end.options.get("subject")
    return [option, str(subject)] if subject else []
