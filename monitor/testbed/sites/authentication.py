"""Who may log in at a site."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import asyncssh

from monitor.testbed.sites.layout import USER


class Gate(asyncssh.SSHServer):
    """Lets the grid's user in, with a key of *authorized_keys* (read at every log-in) or the *password*.

    *denied* says whether the weather lets nobody in.
    """

    def __init__(self, authorized_keys: Path, password: str, denied: Callable[[], bool]) -> None:
        self.authorized_keys = authorized_keys
        self.password = password
        self.denied = denied
        self.open = False
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        self.open = username == USER and not self.denied()
        if self.open and self.connection is not None:
            with suppress(OSError, ValueError):  # without the file no key opens
                self.connection.set_authorized_keys(str(self.authorized_keys))
        return True

    def public_key_auth_supported(self) -> bool:
        return True  # also for those whom no key lets in: a site does not tell who they are

    def password_auth_supported(self) -> bool:
        return True

    def kbdint_auth_supported(self) -> bool:
        return False  # one way to give a password is enough

    def validate_password(self, username: str, password: str) -> bool:  # noqa: ARG002 - asyncssh calls it
        return self.open and password == self.password
