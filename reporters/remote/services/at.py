"""A job of ``at`` that starts the agent unless it runs, and submits its successor, ten minutes later."""

from __future__ import annotations

import shlex

from reporters.remote import agent_process
from reporters.remote.files import write_atomically
from reporters.remote.service import AgentService, ask, demand, failure, lacks

_PAUSE = ("now", "+", "10", "minutes")
_SCRIPT = """\
# Written by `gridcast-reporter install`: {name}
waiting=
for job in $(atq | cut -f 1); do
  ! at -c "$job" | grep -q -x -F '# Written by `gridcast-reporter install`: {name}' || waiting=$job
done
[ -n "$waiting" ] || at -f {script} {pause} 2> /dev/null
exec {command}
"""


class SiteService(AgentService):
    rank = 4
    summary = "job of at that resubmits itself"

    def unavailable(self) -> str:
        missing = lacks("at", "atq", "atrm")
        if missing:
            return missing
        done = ask(["atq"])
        return "" if done.returncode == 0 else f"atq: {failure(done)}"

    def doubt(self) -> str:
        return "" if agent_process.may_run({"atd"}) else "no atd runs on this host: the job may never start"

    def text(self) -> str:
        return _SCRIPT.format(
            name=self.launch.name,
            script=shlex.quote(str(self.launch.job)),
            pause=" ".join(_PAUSE),
            command=self.launch.command_if_not_running,
        )

    def by_hand(self) -> str:
        job = shlex.quote(str(self.launch.job))
        return f"Save this as {job}, and start it: at -f {job} now; remove the job that atq shows with atrm"

    def install(self) -> None:
        write_atomically(self.launch.job, self.text().encode(), mode=0o700)
        if not self._jobs():
            demand(["at", "-f", str(self.launch.job), *_PAUSE])
        agent_process.start(self.launch)

    def stop(self) -> None:
        agent_process.stop(self.launch.state)

    def remove(self) -> None:
        for job in self._jobs():
            demand(["atrm", job])
        self.stop()
        self.launch.job.unlink(missing_ok=True)

    def status(self) -> str:
        return f"{len(self._jobs())} waiting job of at, {agent_process.describe(self.launch.state)}"

    def _jobs(self) -> list[str]:
        first_line = self.text().partition("\n")[0]
        jobs = [line.split()[0] for line in demand(["atq"]).splitlines() if line.strip()]
        return [job for job in jobs if first_line in ask(["at", "-c", job]).stdout.decode(errors="replace")]
