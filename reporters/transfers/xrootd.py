"""XRootD: the target's server fetches the file from the source's, told to by ``xrdcp`` at the reporter.

Both servers know the user by her proxy; the target's is lent one of it to fetch the file with, unless both
trust each other as they are (*delegate* false). xrdcp looks every 2.5 s whether a copy is done (version 5),
so the seconds of a copy are a multiple of that and some more.
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
_STREAMS = 15  # xrdcp takes no more
_CHECKSUM = "adler32"  # what every server has
_AWAY_SECONDS = 2.0
# Its own limits are hours. It tries once: what it would have to try again is what a run is to show.
_LIMITS = {
    "XRD_CONNECTIONRETRY": "1",
    "XRD_CONNECTIONWINDOW": "10",
    "XRD_STREAMTIMEOUT": "60",
    "XRD_CPRETRY": "0",
}
# A path and what follows it are one string to XRootD; no other character cuts it.
_CUTS = re.compile(r"[?&\x00-\x1f\x7f]")
_FAILED = re.compile(r"^(?:Run: )?(?P<said>\[(?:ERROR|FATAL)\].*)$", re.MULTILINE)
_WRAPPING = re.compile(r"\[(?:ERROR|FATAL)\] ?(?:Server responded with an error: )?(?:\[3005\] )?")
_IN_WORDS = (
    (re.compile(r"^Auth failed"), "not let in: no proxy that is valid there, or a host that is not trusted"),
    (re.compile(r"^Connection error|^Invalid address"), "cannot connect"),
    (re.compile(r"^CheckSum error"), f"the {_CHECKSUM} checksums of the servers differ"),
    (re.compile(r"^\[3010\]"), "permission denied"),
    (re.compile(r"^\[3013\]"), "the server cannot do that"),
)


class Transfer(ClientProgram):
    """Options of an end: *host*, *port* and *directory* (``Endpoint``), *path* (``ClientProgram``).

    Of either end, the target's first: *proxy_file* and *ca_directory* (``ProxyCertificate``), *delegate*.
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
        said, side = failure or (decisive_line(done.stderr) or _ended_as(done.returncode), None)
        ends = {"source": self._from, "destination": self._to}
        raise CannotCopy(
            said,
            resource=ends[side].resource if side else self._away(),
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )

    def _away(self) -> str | None:
        """The resource whose server is gone, if one is."""
        return next((end.resource for end in (self._from, self._to) if _is_away(end)), None)


def parse_failure(stderr: str) -> tuple[str, str | None] | None:
    """What xrdcp says has failed, in words, and whether at the "source" or the "destination".

    None where it says nothing of the kind.
    """
    found = _FAILED.search(stderr)
    if found is None:
        return None
    said = found["said"].replace("\0", "").strip()
    # What the source has told the target is an error in an error.
    side = "source" if said.endswith("(source)") or re.search(r"\[3005\] \[ERROR\] Server", said) else None
    if said.endswith("(destination)") or "Local error" in said:
        side = "destination"
    plain = re.sub(r"\s*\((source|destination)\)$", "", _WRAPPING.sub("", said)).strip(" :")
    words = next((words for pattern, words in _IN_WORDS if pattern.search(plain)), "")
    return f"{words}: {plain}" if words else plain, side


def _url(endpoint: Endpoint, path: str) -> str:
    """Raises CannotCopy for a path that cannot be told to XRootD."""
    exported = endpoint.exported(path)
    if _CUTS.search(exported):
        raise CannotCopy(f"XRootD takes no path with ? or & in it: {path!r}", resource=endpoint.resource)
    return f"root://{endpoint.address}/{exported}"


def _is_away(endpoint: Endpoint) -> bool:
    try:
        endpoint.check_reachable(_AWAY_SECONDS)
    except CannotCopy:
        return True
    return False


def _ended_as(returncode: int) -> str:
    return describe_exit(128 - returncode if returncode < 0 else returncode)
