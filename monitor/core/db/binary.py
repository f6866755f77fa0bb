"""Run statements whose parameters and results use PostgreSQL's binary format, through Django's connection.

Placeholders are ``%b``. Django writes parameters into the text of a statement, which is slow for arrays:
interpolating a list of 500 timestamps takes 1.4 ms, sending the list beside the statement 0.2 ms. An array of
integers (numpy) may be a parameter, too.
"""

from __future__ import annotations

import contextlib
import select
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from psycopg import pq
from psycopg.adapt import Dumper

if TYPE_CHECKING:
    from numpy.typing import NDArray

PREPARE_THRESHOLD = 3  # executions of a statement on one connection before it is prepared


@contextlib.contextmanager
def pipeline() -> Iterator[None]:
    """Send the statements of the block without waiting for each result.

    The block must neither fetch rows nor run COPY.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


class _IntegersDumper(Dumper):
    """Send an array of integers, of one dimension, as ``bigint[]``, in a tenth of the time of a list."""

    format = pq.Format.BINARY
    oid = 1016
    _ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])
    _OID_OF_ELEMENT = 20

    def dump(self, obj: NDArray[np.int64]) -> bytes:
        elements = np.empty(len(obj), self._ELEMENT)
        elements["size"], elements["value"] = 8, obj
        # Dimensions, whether there are nulls, and for each dimension its length and its first index.
        shape = (1, 0, self._OID_OF_ELEMENT, len(obj), 1) if len(obj) else (0, 0, self._OID_OF_ELEMENT)
        return struct.pack(f"!{len(shape)}i", *shape) + elements.tobytes()


@contextlib.contextmanager
def cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open a psycopg cursor in Django's connection and transaction; errors are Django's database errors."""
    database = connections[DEFAULT_DB_ALIAS]  # the proxy ``connection`` looks it up at each access
    _close_if_broken(database)
    database.ensure_connection()
    opened_by: psycopg.Connection[Any] = database.connection
    if opened_by.prepare_threshold != PREPARE_THRESHOLD:  # a new connection: Django prepares no statements
        opened_by.prepare_threshold = PREPARE_THRESHOLD
        opened_by.adapters.register_dumper(np.ndarray, _IntegersDumper)
    with database.wrap_database_errors, psycopg.Cursor(opened_by) as opened:
        yield opened


def _close_if_broken(database: Any) -> None:  # its stub lacks the health check
    """Close the connection if the server has ended it, as Django does before a request's first statement.

    Django asks the server each time. A working connection without a statement has nothing to read. Only if
    this one has something, such as a last message or its end, is the question worth a round trip.
    """
    if database.connection is None or database.health_check_done or not database.health_check_enabled:
        return
    if database.connection.closed or _is_readable(database.connection.fileno()):
        database.close_if_health_check_failed()
    else:
        database.health_check_done = True


def _is_readable(descriptor: int) -> bool:
    """Return whether reading would not wait; the end of a connection is readable, too."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def row(query: str, parameters: Mapping[str, object]) -> Any:
    """Return the only row of *query*, sent in binary format; results of Django's cursors are sent as text."""
    with cursor() as opened:
        return opened.execute(query.encode(), parameters, binary=True).fetchone()
