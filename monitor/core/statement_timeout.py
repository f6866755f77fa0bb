"""Limit the statements of the web server: none may occupy a thread for longer than users wait.

The control worker, migrations, commands and streams (``monitor.core.db.snapshot``) have no such limit.
"""

from __future__ import annotations

from django.conf import settings
from django.db import OperationalError, connection

_QUERY_CANCELED = "57014"  # SQLSTATE


def limit_statements() -> None:
    """Have PostgreSQL cancel long statements of connections that this process opens from now on."""
    options = connection.settings_dict["OPTIONS"]  # the threads' connections share it
    limit = f"-c statement_timeout={settings.GRIDCAST_WEB_STATEMENT_SECONDS}s"
    options["options"] = f"{options.get('options', '')} {limit}".strip()


def is_cancelled(error: BaseException | None) -> bool:
    """Return whether *error* says that PostgreSQL cancelled a statement, because it took too long."""
    if not isinstance(error, OperationalError):
        return False
    return getattr(error.__cause__, "sqlstate", None) == _QUERY_CANCELED
