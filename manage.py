#!/usr/bin/env python3
"""Django's command line for gridcast; an error of the environment is one line with advice."""

import gc
import os
import sys

from django.db.utils import OperationalError, ProgrammingError

from monitor.core.env import InvalidVariable
from monitor.management.recorded_commands import RecordingUtility

BROKEN_PIPE = 128 + 13  # as the shell says of a process that SIGPIPE has ended
NO_TABLE = "42P01"  # PostgreSQL's code


def main() -> None:
    try:
        RecordingUtility(sys.argv).execute()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # as of "manage.py audit | head": the reader has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes at its end
        sys.exit(BROKEN_PIPE)
    except (InvalidVariable, OSError, OperationalError, ProgrammingError) as error:
        if "--traceback" in sys.argv or (isinstance(error, ProgrammingError) and not _lacks_tables(error)):
            raise
        sys.exit(f"{type(error).__name__}: {error}\n{_advice(error)}".rstrip())


def _lacks_tables(error: Exception) -> bool:
    return getattr(error.__cause__, "sqlstate", None) == NO_TABLE


def _advice(error: Exception) -> str:
    if _lacks_tables(error):
        return "The depot has no tables yet: manage.py migrate creates them, and so does make serve."
    if isinstance(error, OperationalError):
        return (
            "The depot is PostgreSQL: start it (make serve starts one), set GRIDCAST_VAR to the state of a "
            "running service, or name another with DATABASE_URL."
        )
    return ""


if __name__ == "__main__":
    gc.disable()  # a fifth of the time to start; MonitorConfig.ready enables it when everything is loaded
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")
    main()
