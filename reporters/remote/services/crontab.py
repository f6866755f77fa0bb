"""Two lines in the account's crontab: at boot, and every five minutes, start the agent unless it runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from reporters.remote import agent_process
from reporters.remote.files import write_atomically
from reporters.remote.service import AgentService, ServiceFault, ask, demand, failure, lacks

SCHEDULES = ("@reboot", "*/5 * * * *")
_DAEMONS = {"cron", "crond", "fcron", "bcron-sched", "systemd-cron"}
_IS_EMPTY = re.compile(rb"\bno crontab for\b", re.IGNORECASE)


class SiteService(AgentService):
    rank = 2
    summary = "crontab"

    def unavailable(self) -> str:
        missing = lacks("crontab")
        if missing:
            return missing
        if re.search(r"[%\n]", str(self.launch.state)):
            return f"cron reads % and line feeds as separators, and one is in {self.launch.state}"
        try:
            _table()
        except ServiceFault as error:
            return str(error)
        return ""

    def doubt(self) -> str:
        if agent_process.may_run(_DAEMONS):
            return ""
        return "no cron daemon (cron, crond) runs on this host, so the lines may never be executed"

    def text(self) -> str:
        return "".join(f"{schedule} {self.launch.command_if_not_running}\n" for schedule in SCHEDULES)

    def by_hand(self) -> str:
        return "Add these lines with: crontab -e"

    def install(self) -> None:
        table = _table() or b""
        ours, others = self._divided(table)
        if ours != self.text().encode():
            separator = b"" if not others or others.endswith(b"\n") else b"\n"
            _replace(others + separator + self.text().encode(), self._draft)
        agent_process.start(self.launch)

    def stop(self) -> None:
        agent_process.stop(self.launch.state)

    def remove(self) -> None:
        ours, others = self._divided(_table() or b"")
        if ours:
            _replace(others, self._draft)
        self._draft.unlink(missing_ok=True)
        self.stop()

    def status(self) -> str:
        number = self._divided(_table() or b"")[0].count(b"\n")
        return f"{number} lines in the crontab, {agent_process.describe(self.launch.state)}"

    @property
    def _draft(self) -> Path:
        return self.launch.state / "crontab"

    def _divided(self, table: bytes) -> tuple[bytes, bytes]:
        """Return the lines of *table* that start this agent, whatever their schedule, and the other lines."""
        ending = b" " + os.fsencode(self.launch.command_if_not_running)
        parts: tuple[list[bytes], list[bytes]] = ([], [])
        for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", table):
            parts[0 if line.rstrip(b"\n").endswith(ending) else 1].append(line)
        return b"".join(parts[0]), b"".join(parts[1])


def _table() -> bytes | None:
    """Return the account's crontab, byte for byte; None if there is none.

    Raises:
        ServiceFault: crontab fails for another reason: its table must not be replaced.
    """
    done = ask(["crontab", "-l"])
    if done.returncode == 0:
        return done.stdout
    if _IS_EMPTY.search(done.stderr):
        return None
    raise ServiceFault(f"crontab -l: {failure(done)}")


def _replace(table: bytes, draft: Path) -> None:
    """Replace the account's crontab. An empty one is removed.

    The whole table is in the file *draft* before crontab starts: a pipe from a killed process would look
    complete.
    """
    if not table:
        demand(["crontab", "-r"])
        return
    write_atomically(draft, table, mode=0o600)
    demand(["crontab", draft.name], directory=draft.parent)  # cron cuts paths at a hundred bytes
    draft.unlink()
    if _table() != table:
        raise ServiceFault("crontab changed while its lines were written; see `crontab -l`, and try again")
