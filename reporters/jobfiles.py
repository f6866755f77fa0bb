"""A queued job's directory ``job-*`` at the site: its files, and the scripts that write and read them.

The batch system runs ``script``. ``cancel`` cancels the job by its name and removes itself when the job is
gone; with this script, a later run cancels a job whose reporter was killed or whose number never arrived.
``started`` and ``ended`` contain the stamps of the job: the time in seconds since the epoch at the site and,
in ``ended``, the exit status. ``stdout`` and ``stderr`` are the program's, ``batch`` is the batch system's
own output. A job does not run the program if it finds a file ``cancelled``, or if its directory is gone or
could be another user's.

The program runs in a session of its own, which batch systems that track a session or process group would
lose. A guard in a third session kills the program when the script has ended, even by SIGKILL.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import ProbeFailed
from probes.grid import Completed
from reporters.base import JobFailed, ResourceShell
from reporters.error_lines import decisive_line, tail
from reporters.scratch import KILL_SESSION

NOW = "now() { date +%s.%N; }"
_GUARD = f"""{KILL_SESSION}
trap '' HUP INT TERM
read -r session
read -r _
[ -n "$session" ] && kill_session KILL "$session"
"""
# The job may run at another host than the login: the directory there could be another user's.
_CHECK_OWNER = """\
check_owner() {
  read -r mode _ owner _ << LISTING
$(LC_ALL=C ls -ldn .)
LISTING
  case $mode:$owner in d????-??-*:"$(id -u)") return 0 ;; esac
  echo "$PWD at $(uname -n) has mode $mode, owner $owner: not the directory that the run made" >&2
  exit 1
}
"""
_SCRIPT = """\
#!/bin/sh
: "${{PATH:=/usr/local/bin:/usr/bin:/bin}}"
LC_GRIDCAST_RUN={label}
export PATH LC_GRIDCAST_RUN
job={job}
cd -P {directory} && [ -d "$job" ] || exit 1
{functions}
check_owner
[ ! -e "$job/cancelled" ] || {{ echo "cancelled before it began" >&2; exit 1; }}
[ ! -e "$job/started" ] || {{ echo "started for a second time" >&2; exit 1; }}
umask 077
say() {{ echo "$2" > "$job/$1.part" && mv "$job/$1.part" "$job/$1"; }}
mkfifo "$job/alive" && exec 5<> "$job/alive" 6< "$job/alive" && rm "$job/alive" || exit 1
setsid sh -c {guard} <&6 > /dev/null 2>&1 5>&- 6<&- &
exec 6<&-
say started "$(now)"
setsid timeout -k 2 {wall_seconds:g} {program} < /dev/null > "$job/stdout" 2> "$job/stderr" 5>&- &
session=$!
echo "$session" >&5
{{ wait "$session"; }} 2> /dev/null  # the shell reports signals there
status=$?
now=$(now)
kill_session KILL "$session"
say ended "$now $status"
exit "$status"
"""
# A job that ended by itself will disappear. A job that was just submitted may not be listed yet. So the
# script removes what is listed again and again.
_CANCEL = """\
name={name}
listed() {{
{listing}
}}
remove() {{
{removing}
}}
cd "$(dirname "$0")" || exit 1
: > cancelled
if read -r pid < submitter && [ "$(readlink "/proc/$pid/cwd")" = "$(cd -P .. && pwd -P)" ]; then
  kill -s KILL "$pid"
fi 2> /dev/null
until=$(($(date +%s) + {patience_seconds})) round=0 ids=
[ ! -e ended ] || round=-10
while [ "$(date +%s)" -lt "$until" ]; do
  if ids=$(listed); then
    [ -n "$ids" ] || {{ rm -f cancel; exit 0; }}
    [ "$round" -lt 0 ] || [ "$((round % 5))" -ne 0 ] || remove $ids > /dev/null
  fi
  sleep 0.2
  round=$((round + 1))
done
echo "cannot cancel the job $name${{ids:+: it is still listed}}" >&2
exit 1
"""
_PATIENCE_SECONDS = 20
CANCEL_SECONDS = _PATIENCE_SECONDS + 40.0  # by then every cancel script has given up
RUN_CANCEL = '[ ! -e "$1" ] || exec sh "$1"'

# DIRECTORY JOB CANCEL COMMAND..., with the script as stdin: submits a job. Prints the time, then executes
# COMMAND in the same process.
SUBMIT = f"""{NOW}
umask 077
cd "$1" && mkdir "$2" && printf %s "$3" > "$2/cancel" && cat > "$2/script" || exit 1
echo "$$" > "$2/submitter" || exit 1
shift 3
echo "submitted $(now)"
exec "$@" < /dev/null
"""
# JOB EVENT ROUNDS PAUSE: waits for a file, at most ROUNDS times PAUSE. Prints the stamps and an empty line.
# The status command of the batch system is appended to this script; a job that has ended does not reach it.
WATCH = """\
rounds=$3
until [ -s "$1/$2" ] || [ -s "$1/ended" ] || [ "$rounds" -le 0 ]; do
  sleep "$4"
  rounds=$((rounds - 1))
done
ls "$1" > /dev/null 2>&1  # refreshes the cache of a network file system
for event in started ended; do
  [ ! -s "$1/$event" ] || echo "$event $(cat "$1/$event")"
done
echo
[ "$2" != ended ] || [ ! -s "$1/ended" ] || exit 0
"""
# JOB: prints the end of what a failed job wrote to stderr, or else of the batch system's output, or else why
# a file cannot be written there: a full disk took no message.
_STDERR = """\
for file in "$1/stderr" "$1/batch"; do
  [ ! -s "$file" ] || exec tail -c 4000 "$file"
done
reason=$({ head -c 65536 /dev/zero > "$1/space"; } 2>&1) || echo "cannot write to $1: ${reason##*: }"
rm -f "$1/space"
"""

_STAMP = re.compile(r"^(?P<event>started|ended) (?P<at>\d+(\.\d+)?)\D*?( (?P<status>\d+))?$", re.MULTILINE)
_SUBMITTED = re.compile(r"^submitted (\d+(?:\.\d+)?).*\n", re.MULTILINE)


@dataclass(frozen=True)
class JobStamps:
    """A job's own record of its start, end and exit status.

    Times are in seconds since the epoch, by the clock of the host where the job ran.
    """

    started: float | None = None
    ended: float | None = None
    status: int | None = None


def parse_stamps(text: str) -> JobStamps:
    """Return the stamps in the output of ``WATCH``. Times are as exact as ``date`` at the site."""
    stamps = {stamp["event"]: stamp for stamp in _STAMP.finditer(text)}
    times = {event: float(stamp["at"]) for event, stamp in stamps.items()}
    status = stamps["ended"]["status"] if "ended" in stamps else None
    return JobStamps(times.get("started"), times.get("ended"), int(status) if status else None)


def parse_submitted(text: str) -> tuple[float | None, str]:
    """Parse the output of ``SUBMIT``: return the time of submission and the submit command's output.

    The time is in seconds since the epoch; None if the command did not run.
    """
    match = _SUBMITTED.match(text)
    return (float(match[1]), text[match.end() :]) if match else (None, text)


def script(argv: Sequence[str], *, directory: str, job: str, label: str, wall_seconds: float) -> str:
    """Return the script that the batch system runs: it stamps the start, runs *argv*, stamps the end.

    *job* is the name of the job's directory below *directory*; *label* names the run in the program's
    environment. The program is killed after *wall_seconds*.
    """
    return _SCRIPT.format(
        label=shlex.quote(label),
        directory=shlex.quote(directory),
        job=shlex.quote(job),
        functions=f"{NOW}\n{KILL_SESSION}{_CHECK_OWNER}",
        guard=shlex.quote(_GUARD),
        wall_seconds=wall_seconds,
        program=shlex.join(argv),
    )


def cancel_script(name: str, listing: str, removing: str) -> str:
    """Return the script that cancels the jobs called *name*.

    *listing* is a shell command that prints the jobs' numbers, *removing* is a shell command that cancels the
    jobs with the numbers "$@".
    """
    return _CANCEL.format(
        name=shlex.quote(name), listing=listing, removing=removing, patience_seconds=_PATIENCE_SECONDS
    )


def failure_of(
    shell: ResourceShell, job: str, how: str, status: int | None, *, timeout_seconds: float
) -> JobFailed:
    """Return the error of the job in the directory *job*, with what it wrote last, if that can be read."""
    done = Completed(1, "", "", 0.0)
    with contextlib.suppress(ProbeFailed):
        done = shell.run(["sh", "-c", _STDERR, "sh", job], timeout_seconds=timeout_seconds)
    reason = decisive_line(done.stdout)
    return JobFailed(
        f"the job at {shell.resource} {how}{f': {reason}' if reason else ''}",
        resource=shell.resource,
        exit_status=status,
        stderr_tail=tail(done.stdout),
    )
