"""A hasher that says how many passwords were checked."""

from __future__ import annotations

from typing import ClassVar

from monitor.web.accounts.hashing import Argon2


class CountingArgon2(Argon2):
    checked: ClassVar[list[str]] = []

    def verify(self, password: str, encoded: str) -> bool:
        self.checked.append(password)
        return bool(super().verify(password, encoded))
