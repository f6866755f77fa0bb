"""Accounts of the services in the database: none may do more than its service needs.

The owner of the tables, whose account ``manage.py migrate`` and the control worker use, grants the others:

``web``       the web server: reads and writes rows; no tables, functions or roles; PostgreSQL cancels its
              statements after ``GRIDCAST_WEB_STATEMENT_SECONDS``
``reporter``  a home reporter: reads and writes runs, reports and what they lead to; no passwords, sessions
              and tokens

Errors::

    AccountsRefused   for good: this account may not create roles
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import psycopg
from django.conf import settings
from django.db import ProgrammingError, connection, transaction
from psycopg import sql

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit

if TYPE_CHECKING:
    from typing import LiteralString

SERVICES = ("web", "reporter")
# Tables of credentials and rights. A home reporter needs none of them.
CREDENTIALS = (
    "^(auth|django|account|mfa|socialaccount|usersessions)_"
    "|^monitor_(apitoken|pingkey|siteadministrator|identity|dooropening|reporterkey|enrolment|webhook)"
    "|^monitor_(providermetadata|passkey|secondfactor|accountmail)"
)
# Records that a service adds to and never changes.
APPEND_ONLY = "^monitor_audit"

_TABLES = """
SELECT relname, relname ~ %s, relname ~ %s FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') ORDER BY relname
"""


class AccountsRefused(Exception):
    """This account may not create roles; the message names it."""


def role_of(service: str) -> str:
    """Return the name of the role of *service*: roles are of the whole server, so it names the database."""
    return f"{connection.settings_dict['NAME']}_{service}"


def grant(passwords: Mapping[str, str]) -> list[str]:
    """Create the roles of the services in *passwords*, or give them these passwords; return their names.

    Repeat it after each migration: a new table has no rights until then.

    Raises:
        AccountsRefused: this account may not create roles.
    """
    with transaction.atomic():
        lock_until_commit(AdvisoryLock.ACCOUNTS)
        try:
            for service, password in passwords.items():
                _keep_role(role_of(service), password)
            if "web" in passwords:
                _limit_statements(role_of("web"), settings.GRIDCAST_WEB_STATEMENT_SECONDS)
        except ProgrammingError as error:
            user = connection.settings_dict["USER"]
            raise AccountsRefused(f"cannot create roles as {user!r}: {error}") from error
        for service in passwords:
            _grant_rows(service)
    return [role_of(service) for service in passwords]


def _keep_role(role: str, password: str) -> None:
    """Create *role*, or change its password. The server gets a hash: its log may show statements."""
    hashed = _session().pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
        verb = "CREATE" if cursor.fetchone() is None else "ALTER"
    _execute(
        verb + " ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD {hashed}",
        role=sql.Identifier(role),
        hashed=sql.Literal(hashed.decode()),
    )


def _limit_statements(role: str, seconds: int) -> None:
    limit = sql.Literal(f"{seconds}s")
    _execute("ALTER ROLE {role} SET statement_timeout = {limit}", role=sql.Identifier(role), limit=limit)


def _grant_rows(service: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [CREDENTIALS, APPEND_ONLY])
        tables = cursor.fetchall()
    role = sql.Identifier(role_of(service))
    _execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")  # an older server's default
    _execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}", role=role)
    _execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}", role=role)
    for name, has_credentials, is_append_only in tables:
        if service == "reporter" and (has_credentials or is_append_only):
            continue
        rights = "SELECT, INSERT" if is_append_only else "SELECT, INSERT, UPDATE, DELETE"
        _execute("GRANT " + rights + " ON {table} TO {role}", table=sql.Identifier(name), role=role)


def _execute(statement: LiteralString, **parts: sql.Composable) -> None:
    composed = sql.SQL(statement).format(**parts)
    with connection.cursor() as cursor:
        cursor.execute(composed.as_string(_session()))


def _session() -> psycopg.Connection[tuple[object, ...]]:
    connection.ensure_connection()
    return cast("psycopg.Connection[tuple[object, ...]]", connection.connection)
