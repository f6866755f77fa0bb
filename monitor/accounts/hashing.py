"""Hashes of passwords: argon2id."""

from __future__ import annotations

import threading

from django.contrib.auth.hashers import Argon2PasswordHasher

# The web serves 16 requests at once in each process; unlimited, that many logins would take a gigabyte.
_at_once = threading.BoundedSemaphore(2)


class Argon2(Argon2PasswordHasher):
    """Argon2id with the parameters that RFC 9106 recommends for a server with little memory: 64 MiB.

    Django's own take 100 MiB and eight threads for each login.
    """

    time_cost = 3
    memory_cost = 64 * 1024  # KiB
    parallelism = 4

    def encode(self, password: str, salt: str) -> str:
        with _at_once:
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _at_once:
            return super().verify(password, encoded)
