"""Hashes of passwords: argon2id."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from django.contrib.auth.hashers import Argon2PasswordHasher

# A tenth of what another thread gets: a burst of logins hardly slows down pages, and a login on a machine
# without any processor to spare takes seconds, not minutes.
NICENESS = 10


def _yield_to_others() -> None:
    """Lower the priority of this thread, and of the threads that argon2 starts from it."""
    if sys.platform == "linux":  # elsewhere a niceness is that of the process
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, max(niceness, NICENESS))  # lowering it needs a right


# One hash at a time: a hash takes 64 MiB and all processors, and the web serves 16 requests at once in each
# process. The thread starts with the first hash, after the fork.
_hashing = ThreadPoolExecutor(1, thread_name_prefix="hash", initializer=_yield_to_others)


class Argon2(Argon2PasswordHasher):
    """Argon2id with the parameters that RFC 9106 recommends for a server with little memory: 64 MiB.

    Django's own take 100 MiB and eight threads for each login.
    """

    time_cost = 3
    memory_cost = 64 * 1024  # KiB
    parallelism = 4

    def encode(self, password: str, salt: str) -> str:
        return _hashing.submit(super().encode, password, salt).result()

    def verify(self, password: str, encoded: str) -> bool:
        return _hashing.submit(super().verify, password, encoded).result()
