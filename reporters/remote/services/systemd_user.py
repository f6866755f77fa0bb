"""A systemd user unit, for accounts with lingering: their units run from boot on, without a login."""

from __future__ import annotations

import os
from pathlib import Path

from reporters.account import own_home, own_name
from reporters.credentials.files import exists
from reporters.path_chain import unsafe_reason
from reporters.remote.files import write_atomically
from reporters.remote.service import AgentService, ask, demand, failure, lacks

_LINGERING = Path("/var/lib/systemd/linger")
_UNIT = """\
# Written by `gridcast-reporter install`; `gridcast-reporter uninstall` removes it.
[Unit]
Description=gridcast reporter ({state})
StartLimitIntervalSec=0

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=60
KillMode=mixed
TimeoutStopSec=90
Delegate=yes

[Install]
WantedBy=default.target
"""


class SiteService(AgentService):
    rank = 1
    summary = "systemd user unit"

    @property
    def unit(self) -> str:
        return f"{self.launch.name}.service"

    @property
    def file(self) -> Path:
        configuration = os.environ.get("XDG_CONFIG_HOME") or own_home() / ".config"
        return Path(configuration, "systemd", "user", self.unit)

    def unavailable(self) -> str:
        missing = lacks("systemctl")
        if missing:
            return missing
        done = ask([*_systemctl(), "show", "--property=Version"])
        if done.returncode != 0:
            return f"no systemd user manager: {failure(done)}"
        if not exists(_LINGERING / own_name()):
            return "lingering is off, so units end with the last login; `loginctl enable-linger` may allow it"
        return unsafe_reason(self.file.absolute())

    def text(self) -> str:
        return _UNIT.format(
            state=str(self.launch.state).replace("%", "%%"),
            command=" ".join(map(_quoted, self.launch.words)),
        )

    def by_hand(self) -> str:
        return (
            f"Save this as {self.file}, and start it: systemctl --user daemon-reload; "
            f"systemctl --user enable --now {self.unit}; as root: loginctl enable-linger {own_name()}"
        )

    def install(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file, self.text().encode(), mode=0o644)
        demand([*_systemctl(), "daemon-reload"])
        demand([*_systemctl(), "enable", "--now", self.unit])

    def stop(self) -> None:
        if exists(self.file):
            demand([*_systemctl(), "stop", self.unit])

    def remove(self) -> None:
        if exists(self.file):
            demand([*_systemctl(), "disable", "--now", self.unit])
            self.file.unlink()
            demand([*_systemctl(), "daemon-reload"])

    def status(self) -> str:
        done = ask([*_systemctl(), "is-active", self.unit])
        return f"{self.unit}: {done.stdout.decode().strip() or failure(done)}"


def _quoted(word: str) -> str:
    """Return *word* for ExecStart, where ``%``, ``$``, quotation marks and backslashes have a meaning."""
    for special, replacement in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, replacement)
    return f'"{word}"'


def _systemctl() -> list[str]:
    """Return the command for this user's units; a login by SSH may not know the directory of the manager."""
    directory = Path("/run/user", str(os.geteuid()))
    if "XDG_RUNTIME_DIR" in os.environ or not exists(directory):
        return ["systemctl", "--user"]
    return ["env", f"XDG_RUNTIME_DIR={directory}", "systemctl", "--user"]
