"""A Slurm job that runs the agent and submits its successor, which starts when it has ended.

At most one job of the name runs (``singleton``), and at most one waits.
"""

from __future__ import annotations

import time

from reporters.account import own_name
from reporters.remote.service import AgentService, ServiceFault, ask, demand, failure, lacks

_CANCEL_SECONDS = 90.0  # Slurm gives a cancelled job 30 s by default
_POLL_SECONDS = 0.5
_SCRIPT = """\
#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --dependency=singleton
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --no-requeue
#SBATCH --signal=B:TERM@60
#SBATCH --chdir=/
#SBATCH --open-mode=append
#SBATCH --output="{log}"
{options}# Written by `gridcast-reporter install`. The successor waits for the end of this job, and 5 minutes.
waiting=$(squeue --noheader --format=%i --states=PENDING --user="$(id -un)" --name={name}) || exit 1
[ -n "$waiting" ] || sbatch --quiet --begin=now+5minutes "$0" || exit 1
exec {command}
"""


class SiteService(AgentService):
    rank = 3
    summary = "Slurm job that resubmits itself"

    def unavailable(self) -> str:
        missing = lacks("sbatch", "squeue", "scancel")
        if missing:
            return missing
        done = ask(["squeue", "--noheader", f"--user={own_name()}"])
        return "" if done.returncode == 0 else f"squeue: {failure(done)}"

    def text(self) -> str:
        return _SCRIPT.format(
            name=self.launch.name,
            log=str(self.launch.log).replace("%", "%%"),  # Slurm expands a single one
            options="".join(f"#SBATCH {option}\n" for option in self.launch.options),
            command=self.launch.command,
        )

    def by_hand(self) -> str:
        return (
            f"Save this as a file, and submit it: sbatch FILE; remove it: scancel --name={self.launch.name}"
        )

    def install(self) -> None:
        if not self._jobs():
            demand(["sbatch", "--quiet"], input=self.text().encode())

    def stop(self) -> None:
        """Cancel the running job and its successor; a job that is just starting may submit one meanwhile."""
        until = time.monotonic() + _CANCEL_SECONDS
        while jobs := self._jobs():
            if time.monotonic() > until:
                raise ServiceFault(
                    f"scancel: still in the queue after {_CANCEL_SECONDS:g} s: {', '.join(jobs)}"
                )
            demand(["scancel", f"--user={own_name()}", f"--name={self.launch.name}"])
            time.sleep(_POLL_SECONDS)

    def remove(self) -> None:
        self.stop()

    def status(self) -> str:
        return f"Slurm jobs: {', '.join(self._jobs()) or 'none'}"

    def _jobs(self) -> list[str]:
        """Return the number and the state of each job of this service that has not ended."""
        listed = demand(
            [
                "squeue",
                "--noheader",
                "--format=%i %T",
                f"--user={own_name()}",
                f"--name={self.launch.name}",
            ]
        )
        return [line.strip() for line in listed.splitlines() if line.strip()]
