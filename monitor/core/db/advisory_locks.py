"""Advisory locks, so that only one process at a time does a piece of work, and timeouts for any lock."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum, unique
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

from monitor.core.db import binary

LOCK_TIMEOUT_MILLISECONDS = 1_000
# Below deadlock_timeout (1 s), after which PostgreSQL aborts one of two deadlocked transactions.
RETRY_LOCK_TIMEOUT_MILLISECONDS = 300
RETRIES = 20
SHARED_LOCKS = 64  # of the things of one kind
_LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE
Result = TypeVar("Result")


@unique
class AdvisoryLock(IntEnum):
    """The number of every advisory lock of gridcast: the bytes of each number are ASCII letters."""

    TICK = 0x67726964  # "grid"
    CLAIM = 0x636C6D  # "clm": counting free capacity and claiming runs
    GRID_FILE = 0x66696C65  # "file": changing the configuration from a grid file or a feed
    HOUSEKEEPING = 0x74656E64  # "tend"
    PARTITIONS = 0x70617274  # "part": creating partitions
    DIRTY_HOURS = 0x6D61726B  # "mark": merging and deleting dirty hours
    ROLLUP = 0x726F6C6C  # "roll": computing rollups
    RETENTION = 0x6B656570  # "keep": deleting expired data
    MIGRATE_TO_TIMESCALE = 0x6D6F7665  # "move"
    SPOOL = 0x73706F6C  # "spol": delivering the spool of a reporter
    FORECASTS = 0x666F7265  # "fore": updating forecasts
    FAILURES = 0x6661696C  # "fail": classifying failures
    OUTCOMES = 0x6F757463  # "outc": counting outcomes of runs
    ATTRIBUTION = 0x61747472  # "attr": finding the parts of the grid that are at fault
    AVAILABILITY = 0x6176616C  # "aval": computing the availability of sites
    INCIDENTS = 0x696E6364  # "incd": opening and resolving incidents
    ALERTS = 0x616C7274  # "alrt": evaluating alert rules
    ACCOUNTS = 0x61636374  # "acct": granting the accounts of services their rights
    ADMINISTRATORS = 0x726F6F74  # "root": changing which accounts are administrators
    ACCOUNT_NAMES = 0x6E616D65  # "name": creating accounts and groups, whose names differ in more than case
    WEBHOOKS = 0x686F6F6B  # "hook": delivering webhooks
    ANNOUNCED_SITES = 0x74656C6C  # "tell": telling webhooks the states of sites
    ACCOUNT_MAIL = 0x6D61696C  # "mail": mailing users about their accounts
    TRACES = 0x74726163  # "trac": exporting runs as traces
    DELETIONS = 0x67676F6E  # "ggon": deleting series with many runs
    DOWNLOADS = 0x646F776E  # "down": a place among the downloads of one caller
    STORAGE = 0x73746F72  # "stor": computing the verdicts about storage areas
    SLOTS = 0x736C6F74  # "slot": choosing the slots of runs that are reported from outside
    NOTIFICATIONS = (
        0x6E746679  # "ntfy": sending notifications; a channel that hangs blocks one worker at most
    )


def lock_until_commit(lock: AdvisoryLock) -> None:
    """Wait for *lock* and keep it until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock])


def lock_each_until_commit(lock: AdvisoryLock, keys: Collection[int]) -> None:
    """Wait for the locks of the things with these *keys*, and keep them until the end of the transaction.

    Locks are acquired in one order: concurrent calls do not deadlock, if each transaction calls once. Things
    share ``SHARED_LOCKS`` locks, since PostgreSQL has room for a limited number.
    """
    numbers = sorted({lock * 2**32 + key % SHARED_LOCKS for key in keys})
    with binary.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(number) FROM unnest(%b::bigint[]) AS number", [numbers])


def try_lock_until_commit(lock: AdvisoryLock) -> bool:
    """Acquire *lock* until the transaction ends; return False if another session holds it, else True."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock])
        return bool(cursor.fetchone()[0])


def lock_key(lock: AdvisoryLock, of: str = "") -> int:
    """Return the number of *lock*, or of the lock for the thing *of*, where *lock* is of many things."""
    return lock * 2**32 + zlib.crc32(of.encode()) if of else int(lock)


@contextmanager
def session_lock(lock: AdvisoryLock, *, of: str = "", wait: bool = False) -> Iterator[bool]:
    """Acquire *lock* during the block; yield False if another session holds it, else True.

    *of*: see ``lock_key``. With *wait*, wait until the lock is free. The
    block may contain several transactions. If the session ends
    early, PostgreSQL releases the lock.
    """
    key = lock_key(lock, of)
    take = "SELECT true FROM pg_advisory_lock(%s)" if wait else "SELECT pg_try_advisory_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [key])
        is_taken = bool(cursor.fetchone()[0])
    try:
        yield is_taken
    finally:
        if is_taken:
            with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])


@contextmanager
def session_lock_timeout() -> Iterator[None]:
    """Limit each wait for a lock in the block to ``LOCK_TIMEOUT_MILLISECONDS``.

    A waiting lock request blocks every request queued behind it.

    Raises:
        OperationalError: a lock was not granted in time (``is_lock_timeout``).
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MILLISECONDS}")
    try:
        yield
    finally:
        with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


@contextmanager
def transaction_lock_timeout(milliseconds: int) -> Iterator[None]:
    """Open a transaction, or a savepoint in the caller's transaction, with a lock_timeout of *milliseconds*.

    Raises:
        OperationalError: a lock was not granted in time (``is_lock_timeout``).
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {milliseconds}")
        yield


def is_lock_timeout(error: OperationalError) -> bool:
    """Return whether *error* says that lock_timeout ran out."""
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def retry_on_lock_timeout(work: Callable[[], Result]) -> Result:
    """Call *work* and return its result; *work* may lock rows in another order than ingest does.

    *work* runs in a transaction, or in a savepoint of the caller's transaction. If *work* waits too long for
    a lock, it is rolled back and called again, so PostgreSQL never aborts ingest to end a deadlock. After
    ``RETRIES`` such calls, a last call waits as long as it must.
    """
    for _ in range(RETRIES):
        try:
            with transaction_lock_timeout(RETRY_LOCK_TIMEOUT_MILLISECONDS):
                return work()
        except OperationalError as error:
            if not is_lock_timeout(error):
                raise
    with transaction.atomic():
        return work()
