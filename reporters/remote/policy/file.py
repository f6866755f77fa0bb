"""Read ``site-policy.json``. A policy that cannot be read refuses every run and discloses the minimum.

The digest of the last policy is kept in a file beside it: where a policy was in force once, a missing file is
one that cannot be read. Else the loss of the file would allow everything.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from reporters.fields import Unfit, parse_object
from reporters.path_chain import unsafe_reason
from reporters.remote.files import write_atomically
from reporters.remote.policy.site_policy import ABSENT, MAX_BYTES, SitePolicy, UnreadablePolicy, unreadable

LAST = "site-policy.last.json"  # beside the policy: its digest
_GONE = "removed, but it was in force here: restore it, or write {} for no rules"


def read_policy(file: Path) -> SitePolicy:
    """Return the policy in *file*; if there is no file, and there was none, one that refuses nothing.

    Never raises: a policy that cannot be read is one that refuses every run.
    """
    try:
        data = _read(file)
    except FileNotFoundError:
        last = _last_digest(file)
        return ABSENT if last is None else _gone(file, last)
    except UnreadablePolicy as error:
        return unreadable(f"{file}: {error.error}", error.told)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return unreadable(f"cannot read {file}: {reason}", f"cannot be read: {reason}")
    from reporters.remote.policy.parsing import parse_policy  # noqa: PLC0415  # agents without a policy: 0.5 MB

    try:
        return parse_policy(data)
    except UnreadablePolicy as error:
        return unreadable(f"{file}: {error.error}", error.told, sha256=hashlib.sha256(data).hexdigest())


def _read(file: Path) -> bytes:
    """Return the content of *file*, of at most MAX_BYTES and one byte.

    Raises:
        UnreadablePolicy: *file* is no regular file, is too large, or another user could change it.
        OSError: *file* cannot be read.
    """
    # O_NONBLOCK: the opening of a pipe would wait for a writer.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _same("expected a regular file")
        if reason := unsafe_reason(file.absolute()):
            raise UnreadablePolicy(reason, "another user of this host could replace it")
        if status.st_size > MAX_BYTES:
            raise _same(f"expected at most {MAX_BYTES} bytes, got {status.st_size}")
        return opened.read(MAX_BYTES + 1)


def _gone(file: Path, last: str) -> SitePolicy:
    return unreadable(f"{file}: {_GONE} (SHA-256 {last or 'unknown'})", _GONE, sha256=last)


def _last_digest(file: Path) -> str | None:
    """Return the digest of the last policy; empty if it is unknown, None if there was no policy."""
    try:
        document = parse_object(file.with_name(LAST).read_bytes(), max_bytes=MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, Unfit):
        return ""
    return str(document.get("sha256", ""))


def _same(error: str) -> UnreadablePolicy:
    return UnreadablePolicy(error, error)


class PolicyFile:
    """The policy in *file*, read again when the file has changed, so that an edit takes effect at once.

    A file that was there and has gone counts as unreadable, also at a later start.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._version: tuple[int, ...] | None = None
        self._policy = ABSENT
        self._kept = _last_digest(file)

    def current(self) -> SitePolicy:
        """Return the policy as it is now."""
        version = self._status()
        if version is None or version != self._version:
            policy = read_policy(self.file)
            if policy.status == "absent" and self._policy.status != "absent":  # the digest was not written
                policy = _gone(self.file, self._policy.sha256)
            self._policy, self._version = policy, version
        digest = self._policy.sha256  # empty if the file cannot be read
        if version is not None and self._kept != digest and (digest or self._kept is None):
            self._keep(digest)
        return self._policy

    def _keep(self, digest: str) -> None:
        with contextlib.suppress(OSError):  # of a full disk: tried again with the next run
            write_atomically(self.file.with_name(LAST), f'{{"sha256": "{digest}"}}\n'.encode(), 0o600)
            self._kept = digest

    def _status(self) -> tuple[int, ...] | None:
        try:
            status = self.file.stat()
        except OSError:
            return None
        return (
            status.st_dev,
            status.st_ino,
            status.st_mode,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
