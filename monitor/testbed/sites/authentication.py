"""Authentication at a site: by key or password."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import asyncssh

from monitor.testbed.sites.layout import USER


class SiteAuthentication(asyncssh.SSHServer):
    """Accepts the grid's user with the *password* or a key in the file *authorized_keys*.

    The file is read at every login. No login is accepted while *denied* returns true, which means that the
    login fault "denied" is active.
    """

    def __init__(self, authorized_keys: Path, password: str, denied: Callable[[], bool]) -> None:
        self.authorized_keys = authorized_keys
        self.password = password
        self.denied = denied
        self.is_allowed = False
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        self.is_allowed = username == USER and not self.denied()
        if self.is_allowed and self.connection is not None:
            with suppress(OSError, ValueError):  # without the file no key is accepted
                self.connection.set_authorized_keys(str(self.authorized_keys))
        return True

    def public_key_auth_supported(self) -> bool:
        return True  # for every user: the answer must not reveal which users exist

    def password_auth_supported(self) -> bool:
        return True

    def kbdint_auth_supported(self) -> bool:
        return False  # password authentication suffices

    def validate_password(self, username: str, password: str) -> bool:  # noqa: ARG002 - asyncssh calls it
        return self.is_allowed and password == self.password
