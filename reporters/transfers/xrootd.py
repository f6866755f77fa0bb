"""XRootD: ``xrdcp`` at the reporter makes the target's server fetch the file from the source's server.

Both servers authenticate the user by the proxy. The target's server gets a delegated proxy for the fetch,
unless the servers trust each other (*delegate* false). xrdcp (version 5) polls every 2.5 s whether a copy is
done, so the seconds of a copy are a multiple of 2.5 s, plus a little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from probes.grid import Capabilities, Completed, CopyOptions, Transferred
from reporters.base import CannotCopy, Credential, End, describe_exit
from reporters.copying import ClientProgram
from reporters.credentials.proxy import ProxyCertificate
from reporters.endpoints import Endpoint
from reporters.error_lines import decisive_line, tail

_PORT = 1094
_STREAMS = 15  # limit of xrdcp
_CHECKSUM = "adler32"  # supported by every server
_REACHABLE_SECONDS = 2.0
# The default limits are hours. No retries: a run shall show the failures that a retry would hide.
_LIMITS = {
    "XRD_CONNECTIONRETRY": "1",
    "XRD_CONNECTIONWINDOW": "10",
    "XRD_STREAMTIMEOUT": "60",
    "XRD_CPRETRY": "0",
}
# XRootD has path and parameters in one string; only these characters end the path.
_PATH_END = re.compile(r"[?&\x00-\x1f\x7f]")
_FAILED = re.compile(r"^(?:Run: )?(?P<message>\[(?:ERROR|FATAL)\].*)$", re.MULTILINE)
_WRAPPING = re.compile(r"\[(?:ERROR|FATAL)\] ?(?:Server responded with an error: )?(?:\[3005\] )?")
_EXPLANATIONS = (
    (re.compile(r"^Auth failed"), "login refused: no proxy that is valid there, or an untrusted host"),
    (re.compile(r"^Connection error|^Invalid address"), "cannot connect"),
    (re.compile(r"^CheckSum error"), f"the {_CHECKSUM} checksums of the servers differ"),
    (re.compile(r"^\[3010\]"), "permission denied"),
    (re.compile(r"^\[3013\]"), "the server cannot do that"),
)


class Transfer(ClientProgram):
    """Copies by XRootD.

    Options of either end:
        host, port, directory: the server, as in ``Endpoint``.
        path: the PATH with which xrdcp runs, as in ``ClientProgram``.

    Options of the target, or else of the source:
        proxy_file, ca_directory: the proxy, as in ``ProxyCertificate``.
        delegate: whether the target's server gets a delegated proxy.
    """

    capabilities = Capabilities(third_party=True, parallel_streams=True, server_checksum=True)
    option_types: ClassVar[Mapping[str, str]] = {
        "ca_directory": "str",
        "delegate": "bool",
        "directory": "str",
        "host": "str",
        "path": "str",
        "port": "int",
        "proxy_file": "str",
    }

    def __init__(self, source: End, target: End) -> None:
        super().__init__(source, target)
        self._from, self._to = Endpoint.of(source, _PORT), Endpoint.of(target, _PORT)
        self._options = {**source.options, **target.options}
        self._proxy = ProxyCertificate.of(self._options)

    def credentials(self) -> Sequence[Credential]:
        return (self._proxy,)

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), **self._proxy.environment, **_LIMITS}

    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        third_party = ["delegate", "only"] if self._options.get("delegate", True) else ["only"]
        streams = ["--streams", str(min(options.streams, _STREAMS))] if options.streams > 1 else []
        checksum = ["--cksum", _CHECKSUM] if options.server_checksum else []
        urls = [_url(self._from, source_path), _url(self._to, target_path)]
        return ["xrdcp", "--force", "--nopbar", "--tpc", *third_party, *streams, *checksum, *urls]

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        self.check_directory(partial_path)
        for endpoint in (self._from, self._to):
            endpoint.check_reachable(timeout_seconds)
        return super().send(source_path, partial_path, options, timeout_seconds)

    def judge(self, done: Completed, size_bytes: int, options: CopyOptions) -> Transferred:
        failure = parse_failure(done.stderr)
        if failure is None and done.returncode == 0:
            return Transferred(size_bytes, done.seconds, streams=max(1, min(options.streams, _STREAMS)))
        message, side = failure or (decisive_line(done.stderr) or _describe_exit(done.returncode), None)
        ends = {"source": self._from, "destination": self._to}
        raise CannotCopy(
            message,
            resource=ends[side].resource if side else self._unreachable(),
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )

    def _unreachable(self) -> str | None:
        """Return the name of the resource whose server is unreachable; None if both servers are reachable."""
        return next((end.resource for end in (self._from, self._to) if not _is_reachable(end)), None)


def parse_failure(stderr: str) -> tuple[str, str | None] | None:
    """Return (description, end at fault) of xrdcp's error; None if there is no error.

    The end at fault is "source", "destination" or None.
    """
    match = _FAILED.search(stderr)
    if match is None:
        return None
    message = match["message"].replace("\0", "").strip()
    # An error of the source, reported by the target, is nested in another error.
    side = (
        "source" if message.endswith("(source)") or re.search(r"\[3005\] \[ERROR\] Server", message) else None
    )
    if message.endswith("(destination)") or "Local error" in message:
        side = "destination"
    plain = re.sub(r"\s*\((source|destination)\)$", "", _WRAPPING.sub("", message)).strip(" :")
    words = next((words for pattern, words in _EXPLANATIONS if pattern.search(plain)), "")
    return f"{words}: {plain}" if words else plain, side


def _url(endpoint: Endpoint, path: str) -> str:
    """Return the URL of *path*. Raises CannotCopy for a path that XRootD does not support."""
    exported = endpoint.exported(path)
    if _PATH_END.search(exported):
        raise CannotCopy(f"XRootD supports no ? or & in a path: {path!r}", resource=endpoint.resource)
    return f"root://{endpoint.address}/{exported}"


def _is_reachable(endpoint: Endpoint) -> bool:
    try:
        endpoint.check_reachable(_REACHABLE_SECONDS)
    except CannotCopy:
        return False
    return True


def _describe_exit(returncode: int) -> str:
    return describe_exit(128 - returncode if returncode < 0 else returncode)
