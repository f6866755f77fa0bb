"""The systemd unit that runs ``manage.py serve``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from monitor.core import env
from reporters.account import own_name

VARIABLES_FILE = "/etc/default/gridcast"
_STOP_SECONDS = 60  # current runs have 10 s to end, then the servers stop

_UNIT = """\
# As root:  save this as /etc/systemd/system/gridcast.service
#           systemctl daemon-reload && systemctl enable --now gridcast
# The first start prints the administrator's password:  journalctl -u gridcast
{advice}[Unit]
Description=gridcast, which watches a computational grid by using it
Documentation={documentation}
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User={user}
WorkingDirectory={root}
Environment={state}
EnvironmentFile=-{variables_file}
ExecStart={command}
KillMode=mixed
TimeoutStopSec={stop_seconds}
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
_ADVICE = """\
# These variables are set here. A unit is readable by all users, and some of them may be secret: write them
# into {file} (mode 0600), one NAME=value a line:
#           {names}
"""
_READ_ELSEWHERE = {"GRIDCAST_VAR"}  # stands in the unit


def unit(options: Sequence[str], variables: Mapping[str, str] = os.environ) -> str:
    """Return the unit for this checkout and this user; *options* are those of ``manage.py serve``.

    The unit sets GRIDCAST_VAR. For other *variables* of gridcast it contains only the names, in a comment,
    because their values may be secret.
    """
    names = sorted(name for name in variables if _is_ours(name))
    command = [sys.executable, str(env.ROOT / "manage.py"), "serve", *options]
    return _UNIT.format(
        advice=_ADVICE.format(file=VARIABLES_FILE, names=" ".join(names)) if names else "",
        root=_escaped(str(env.ROOT)),
        documentation=_escaped((env.ROOT / "docs" / "operations.md").as_uri()),
        user=own_name(),
        state=_quoted(_escaped(f"GRIDCAST_VAR={env.var_directory()}")),
        variables_file=VARIABLES_FILE,
        command=" ".join(_quoted(_escaped(word).replace("$", "$$")) for word in command),
        stop_seconds=_STOP_SECONDS,
    )


def _is_ours(name: str) -> bool:
    is_gridcasts = name.startswith("GRIDCAST_") or name in {"DATABASE_URL", "REDIS_URL"}
    return is_gridcasts and name not in _READ_ELSEWHERE


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if any(character in word for character in " \t\"'\\;") else word


def _escaped(text: str) -> str:
    """Double every ``%``, because systemd expands a single one."""
    return text.replace("%", "%%")
